#pragma once
#include <vector>

#include "ptx/program.hpp"

namespace ptx {

/// What lanes of a warp meet in.
enum class Meeting : std::uint8_t { sync, up, down, butterfly, indexed, ballot, any, all };
/// Carries it out for the lanes of the mask, which all wait at `i`. `first` is lane 0 of the warp,
/// which has `count` threads.
void meet(const Instruction& i, Thread* first, unsigned count, std::uint32_t mask);

}  // namespace ptx
