#pragma once
// A program's custom op, and the functions that launch its kernels.
#include <cstdint>

#include <braid/core/tensor.hpp>

// In a separate namespace: Braid has a softsign too, and may get any other name later.
namespace mine {

/// x / (1 + |x|), elementwise, on every device.
/// Dtypes    float32, float64
/// Gradient  dy / (1 + |x|)², by a separate kernel; gradients of gradients work, with the
///           derivative of |x| at 0 taken as 0
/// Throws    DTypeError for another dtype
[[nodiscard]] braid::Tensor softsign(const braid::Tensor& x);

}  // namespace mine

// Defined in softsign.cu for float and double. They queue their work on a cudaStream_t and return a
// cudaError_t. The types void* and int keep CUDA's headers out of other files.
template <class T> int launch_softsign(const T* x, T* y, std::int64_t n, void* stream);
template <class T>
int launch_softsign_backward(const T* x, const T* dy, T* dx, std::int64_t n, void* stream);
