#include <braid/core/kernel_args/rnn.hpp>

#include "cuda/device/loop.cuh"
#include "cuda/device/math.cuh"
#include "cuda/device/run.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// The steps of recurrent layers: they compute the activations from the gates and the states after
// the step, and the gradients of that. Each thread has one cell. The batch of a step is small, so
// what matters is that a step is one launch. The kind is a uniform branch, so there is one kernel
// per dtype.
namespace braid::cuda {

/// Element `at` of a matrix in memory, as a computed number.
template <class E> BRAID_DEVICE typename E::A get(const void* p, std::int64_t at) {
  return E::load(static_cast<const typename E::T*>(p)[at]);
}
template <class E> BRAID_DEVICE void put(void* p, std::int64_t at, typename E::A value) {
  static_cast<typename E::T*>(p)[at] = E::store(value);
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    rnn_step(RnnCellArgs args, Divider hidden, bool narrow) {
  using A = typename E::A;
  const std::int64_t n = args.hidden, width = gates_of(args.kind) * n, cells = args.batch * n;
#pragma unroll 1
  for (std::int64_t at = grid_thread(); at < cells; at += grid_threads()) {
    // `first` is the first of the cell's gates, which are n apart
    const std::int64_t row = hidden.divide(at, narrow), first = row * width + (at - row * n);
    if (args.lengths != nullptr && args.lengths[row] <= args.step) {
      put<E>(args.h, at, get<E>(args.h_before, at));
      if (args.kind == RnnKind::lstm) put<E>(args.c, at, get<E>(args.c_before, at));
    } else if (args.kind == RnnKind::lstm) {
      const A i = sigmoid_of(get<E>(args.gates, first)),
              f = sigmoid_of(get<E>(args.gates, first + n)),
              g = tanh_of(get<E>(args.gates, first + 2 * n)),
              o = sigmoid_of(get<E>(args.gates, first + 3 * n)),
              c = f * get<E>(args.c_before, at) + i * g;
      put<E>(args.gates, first, i), put<E>(args.gates, first + n, f),
          put<E>(args.gates, first + 2 * n, g), put<E>(args.gates, first + 3 * n, o);
      put<E>(args.c, at, c);
      put<E>(args.h, at, o * tanh_of(c));
    } else if (args.kind == RnnKind::gru) {
      const A r = sigmoid_of(get<E>(args.gates, first) + get<E>(args.hidden_gates, first)),
              z = sigmoid_of(get<E>(args.gates, first + n) + get<E>(args.hidden_gates, first + n)),
              fresh = tanh_of(get<E>(args.gates, first + 2 * n) +
                              r * get<E>(args.hidden_gates, first + 2 * n));
      put<E>(args.gates, first, r), put<E>(args.gates, first + n, z),
          put<E>(args.gates, first + 2 * n, fresh);
      put<E>(args.h, at, fresh + z * (get<E>(args.h_before, at) - fresh));
    } else {
      const A x = get<E>(args.gates, first);
      // a NaN fails the comparison and stays
      put<E>(args.h, at, args.kind == RnnKind::tanh ? tanh_of(x) : x <= A(0) ? A(0) : x);
    }
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads)
    rnn_step_backward(RnnCellBackwardArgs args, Divider hidden, bool narrow) {
  using A = typename E::A;
  const std::int64_t n = args.hidden, width = gates_of(args.kind) * n, cells = args.batch * n;
#pragma unroll 1
  for (std::int64_t at = grid_thread(); at < cells; at += grid_threads()) {
    const std::int64_t row = hidden.divide(at, narrow), first = row * width + (at - row * n);
    A d = get<E>(args.dh, at);
    if (args.dy != nullptr) d += get<E>(args.dy, at);
    if (args.lengths != nullptr && args.lengths[row] <= args.step) {
      put<E>(args.dh, at, d);
      for (std::int64_t gate = first; gate < (row + 1) * width; gate += n) {
        put<E>(args.dgates, gate, A(0));
        if (args.dhidden_gates != nullptr) put<E>(args.dhidden_gates, gate, A(0));
      }
    } else if (args.kind == RnnKind::lstm) {
      const A i = get<E>(args.gates, first), f = get<E>(args.gates, first + n),
              g = get<E>(args.gates, first + 2 * n), o = get<E>(args.gates, first + 3 * n);
      const A squashed = tanh_of(get<E>(args.c, at)),
              dc = get<E>(args.dc, at) + d * o * (A(1) - squashed * squashed);
      put<E>(args.dgates, first, dc * g * (i * (A(1) - i)));
      put<E>(args.dgates, first + n, dc * get<E>(args.c_before, at) * (f * (A(1) - f)));
      put<E>(args.dgates, first + 2 * n, dc * i * (A(1) - g * g));
      put<E>(args.dgates, first + 3 * n, d * squashed * (o * (A(1) - o)));
      put<E>(args.dc, at, dc * f);
      put<E>(args.dh, at, A(0));
    } else if (args.kind == RnnKind::gru) {
      const A r = get<E>(args.gates, first), z = get<E>(args.gates, first + n),
              fresh = get<E>(args.gates, first + 2 * n);
      const A dfresh = d * (A(1) - z) * (A(1) - fresh * fresh),
              dz = d * (get<E>(args.h_before, at) - fresh) * (z * (A(1) - z));
      const A dr = dfresh * get<E>(args.hidden_gates, first + 2 * n) * (r * (A(1) - r));
      put<E>(args.dgates, first, dr), put<E>(args.dgates, first + n, dz),
          put<E>(args.dgates, first + 2 * n, dfresh);
      put<E>(args.dhidden_gates, first, dr), put<E>(args.dhidden_gates, first + n, dz),
          put<E>(args.dhidden_gates, first + 2 * n, dfresh * r);
      put<E>(args.dh, at, d * z);
    } else {
      const A y = get<E>(args.h, at);
      put<E>(args.dgates, first,
             args.kind == RnnKind::tanh ? d * (A(1) - y * y)
             : y <= A(0)                ? A(0)
                                        : d);
      put<E>(args.dh, at, A(0));
    }
  }
}

void rnn_cell(const RnnCellArgs& args, Stream& stream) {
  if (args.dtype != DType::float32 && args.dtype != DType::float64)
    fail_dtype("rnn_cell", "float32 or float64", args.dtype);
  const std::int64_t cells = args.batch * args.hidden;
  if (cells <= 0) return;
  run("rnn_cell", args.dtype == DType::float32 ? rnn_step<F32> : rnn_step<F64>,
      blocks_for(cells, kThreads), kThreads, stream, args, Divider(args.hidden),
      cells < std::int64_t{1} << 31);
}

void rnn_cell_backward(const RnnCellBackwardArgs& args, Stream& stream) {
  if (args.dtype != DType::float32 && args.dtype != DType::float64)
    fail_dtype("rnn_cell_backward", "float32 or float64", args.dtype);
  const std::int64_t cells = args.batch * args.hidden;
  if (cells <= 0) return;
  run("rnn_cell_backward",
      args.dtype == DType::float32 ? rnn_step_backward<F32> : rnn_step_backward<F64>,
      blocks_for(cells, kThreads), kThreads, stream, args, Divider(args.hidden),
      cells < std::int64_t{1} << 31);
}

}  // namespace braid::cuda
