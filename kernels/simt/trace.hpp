#pragma once
#include <functional>
#include <string>

namespace braid::simt {

/// Gets each line of simt::trace (without its end) instead of stdout; an empty function restores
/// that. Returns the old one. Set it while no kernel runs.
std::function<void(const std::string&)> set_trace_handler(
    std::function<void(const std::string&)> handler);

}  // namespace braid::simt
