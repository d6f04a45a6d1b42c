#pragma once
#include "kernels/calls.hpp"

namespace agreement {

/// Counts of the comparisons, and the largest error.
struct Tally {
  std::int64_t defined = 0, run = 0;
  double largest = 0;  ///< the device's largest error, in units of the bound
  std::string where;
};

/// Runs a call with the CPU's kernel or with that of the program's device. Returns "" if it
/// succeeds, else the type and the text of its error.
std::string answer(const Call& call, DType t, bool on_device);

using CallsOf = std::vector<Call> (*)(DType);
/// Compares all calls of a kernel that the CPU accepts. Both the CPU with one thread and the
/// program's device (a CPU uses three threads) are compared with the CPU's float64 result.
Tally agree(const char* name, CallsOf calls_of);
void every_kernel_agrees();

}  // namespace agreement
