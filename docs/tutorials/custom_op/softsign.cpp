// The op: checks, forward and gradient. It uses only Braid's public headers.
#include "softsign.hpp"

#include <braid/braid.hpp>
#include <braid/kernels/cuda_native.hpp>

#include <cmath>

using namespace braid;

namespace {

/// Calls f with a value of the dtype's C++ type.
template <class F> void with_type(DType dtype, F f) {
  if (dtype == DType::float32) return f(float{});
  if (dtype == DType::float64) return f(double{});
  throw DTypeError(str("softsign: expected float32 or float64, got ", dtype));
}

bool on_cuda(const Tensor& x) { return x.device().type() == DeviceType::cuda; }

/// Queues a kernel on the device's current stream, like all ops of the device. The host does not
/// wait. Memory is freed in stream order, so x may be destroyed immediately.
template <class Launch> void queue(const char* name, Device device, Launch launch) {
  const cuda::NativeStream native(name, current_stream(device));
  native.check(launch(native.get()));
}

/// Computes dx = dy / (1 + |x|)². It is an op too, with its own gradient. Both inputs are made
/// contiguous.
Tensor softsign_backward(const Tensor& any_x, const Tensor& any_dy) {
  // recorded, if a gradient is needed
  const Tensor x = any_x.contiguous(), dy = any_dy.contiguous();
  Tensor dx = empty(x.shape(), {.device = x.device(), .dtype = x.dtype()});
  with_type(x.dtype(), [&]<class T>(T) {
    const std::int64_t n = x.numel();
    if (on_cuda(x)) {
#if BRAID_HAVE_KERNELS
      queue("softsign_backward", x.device(), [&](void* stream) {
        return launch_softsign_backward<T>(cuda::pointer<const T>(x), cuda::pointer<const T>(dy),
                                           cuda::pointer<T>(dx), n, stream);
      });
#endif
    } else {
      const T *from = x.data<const T>(), *weight = dy.data<const T>();
      T* to = dx.data<T>();
      for (std::int64_t i = 0; i < n; ++i) {
        const T d = 1 + std::abs(from[i]);
        to[i] = weight[i] / (d * d);
      }
    }
  });
  if (!needs_grad({x, dy})) return dx;
  return record(
      "softsign_backward", {x, dy}, dx,
      [x = SavedTensor(x), dy = SavedTensor(dy)](const Tensor& ddx, Needs needs) -> Grads {
        Tensor of_x, of_dy;  // made of recorded ops, so it is differentiable again
        if (needs[0]) {
          const Tensor d = 1.0 + abs(x.get());
          of_x = ddx * dy.get() * sign(x.get()) * -2.0 / (d * d * d);
        }
        if (needs[1]) of_dy = softsign_backward(x.get(), ddx);
        return {of_x, of_dy};
      });
}

}  // namespace

Tensor mine::softsign(const Tensor& any_x) {
  const Tensor x = any_x.contiguous();
  Tensor y = empty(x.shape(), {.device = x.device(), .dtype = x.dtype()});
  with_type(x.dtype(), [&]<class T>(T) {
    const std::int64_t n = x.numel();
    if (on_cuda(x)) {
#if BRAID_HAVE_KERNELS
      queue("softsign", x.device(), [&](void* stream) {
        return launch_softsign<T>(cuda::pointer<const T>(x), cuda::pointer<T>(y), n, stream);
      });
#endif
    } else {
      const T* from = x.data<const T>();
      T* to = y.data<T>();
      for (std::int64_t i = 0; i < n; ++i) to[i] = from[i] / (1 + std::abs(from[i]));
    }
  });
  if (!needs_grad({x})) return y;
  return record("softsign", {x}, y, [x = SavedTensor(x)](const Tensor& dy) -> Grads {
    return {softsign_backward(x.get(), dy)};
  });
}
