#pragma once
#include <functional>
#include <string>

namespace braid::simt {

/// Sets the function that receives each line of simt::trace (without the newline) instead of
/// stdout. An empty function restores stdout. Returns the previous function. Call it while no
/// kernel runs.
std::function<void(const std::string&)> set_trace_handler(
    std::function<void(const std::string&)> handler);

}  // namespace braid::simt
