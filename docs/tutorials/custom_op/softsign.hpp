#pragma once
// An op of a program's own: what it is, and what its kernels are called.
#include <cstdint>

#include <braid/core/tensor.hpp>

// In a namespace of its own: Braid has a softsign too, and may come to have any other name.
namespace mine {

/// x / (1 + |x|), element by element, on every device.
/// Dtypes    float32, float64
/// Gradient  dy / (1 + |x|)², by a kernel of its own; gradients of gradients too, with that of |x|
///           at 0 taken as 0
/// Throws    DTypeError for another dtype
[[nodiscard]] braid::Tensor softsign(const braid::Tensor& x);

}  // namespace mine

// Defined in softsign.cu, for float and double. They queue their work on a cudaStream_t and return
// a cudaError_t: plain words, so that no other file needs CUDA's headers.
template <class T> int launch_softsign(const T* x, T* y, std::int64_t n, void* stream);
template <class T>
int launch_softsign_backward(const T* x, const T* dy, T* dx, std::int64_t n, void* stream);
