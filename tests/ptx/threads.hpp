#pragma once
#include <vector>

#include "ptx/program.hpp"

namespace ptx {

/// The operations in which the lanes of a warp synchronize.
enum class WarpOp : std::uint8_t { sync, up, down, butterfly, indexed, ballot, any, all };
/// Runs the operation for the lanes of the mask, which all wait at `i`. `first` is lane 0 of the
/// warp, which has `count` threads.
void meet(const Instruction& i, Thread* first, unsigned count, std::uint32_t mask);
/// Gives the result of a vote to the threads of a block that wait at a bar.red.
void vote_at_barrier(const Program& program, std::vector<Thread>& threads);
/// Runs a matrix operation for the 32 lanes of a warp, which all wait at `i`.
void meet_all(const Instruction& i, Thread* first);

}  // namespace ptx
