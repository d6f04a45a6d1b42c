#pragma once
#include <braid/core/kernel_table.hpp>

namespace braid::cuda {

/// Every kernel of the CUDA backend. Kernels run on the stream that they are given and return
/// before they are done.
/// Types   all that each entry of KernelTable names; float16 and bfloat16 are computed in float32.
/// Order   no sum uses floating-point atomics. The order of each depends on shapes and strides
///         alone, so equal inputs give equal bits on every GPU.
/// Throws  for errors that the host can detect, before anything is queued. Indices, labels and
///         integer divisors are checked by the kernels: see runtime/device_errors.hpp.
[[nodiscard]] const KernelTable& kernel_table() noexcept;

}  // namespace braid::cuda
