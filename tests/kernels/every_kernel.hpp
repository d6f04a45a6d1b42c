#pragma once
#include "kernels/calls.hpp"

namespace agreement {

/// What was compared.
struct Tally {
  std::int64_t defined = 0, run = 0;
  double largest = 0;  ///< error of the device in units of the bound
  std::string where;
};

/// How a kernel of the CPU, or of the program's device, answers: nothing, or the type and text of
/// its error.
std::string answer(const Call& call, DType t, bool on_device);

using CallsOf = std::vector<Call> (*)(DType);
/// All calls of a kernel that the CPU takes: by the CPU, by the program's device (a CPU with three
/// threads for one) and by the CPU in float64, and the two results against the third.
Tally agree(const char* name, CallsOf calls_of);
void every_kernel_agrees();

}  // namespace agreement
