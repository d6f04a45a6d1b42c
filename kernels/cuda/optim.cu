#include "cuda/device/row.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// Optimizer steps: parameters, gradients and state are read and written once. The elements of many items form one line of tiles, so that many small
// parameters are one launch; the list of items travels in the kernel's arguments, without an allocation or a copy.
namespace braid::cuda {

inline constexpr int kFewItems = 60, kManyItems = 600;  // of one launch: its arguments stay under 4 KiB, and under the 32 764 bytes that CUDA has from 12.1 on
inline constexpr std::int64_t kStepTile = 2048;         // elements

template <int N>
struct StepItems {
  OptimItem item[N];
  std::int64_t first_tile[N];
  std::int64_t tiles;
  int count;
};

/// What a step reads and writes beside the parameters and the gradients.
struct StepState {
  bool reads_m, writes_m, has_v;
};

/// Calls step(p, g, m, v) for this thread's elements, in packs of 16 bytes where an item's memory is aligned.
template <class E, int N, class F>
BRAID_DEVICE void for_items(const StepItems<N>& items, const StepState& state, F step) {
  using T = typename E::T;
  using A = typename E::A;
  constexpr int width = kWidest<T>;
  for (std::int64_t tile = blockIdx.x; tile < items.tiles; tile += gridDim.x) {
    int low = 0;  // the last item that starts at or before the tile
    for (int high = items.count; high - low > 1;) {
      const int middle = (low + high) / 2;
      if (items.first_tile[middle] <= tile) low = middle;
      else high = middle;
    }
    const std::int64_t begin = (tile - items.first_tile[low]) * kStepTile, left = items.item[low].n - begin;
    const int count = static_cast<int>(left < kStepTile ? left : kStepTile);
    T* const p = static_cast<T*>(items.item[low].p) + begin;
    const T* const g = static_cast<const T*>(items.item[low].g) + begin;
    T* const m = static_cast<T*>(items.item[low].m) + begin;
    T* const v = static_cast<T*>(items.item[low].v) + begin;
    const bool aligned = is_aligned<width>(p) && is_aligned<width>(g) && (!state.writes_m || is_aligned<width>(m)) && (!state.has_v || is_aligned<width>(v));
    for (int i = static_cast<int>(threadIdx.x) * width; i < count; i += kThreads * width) {
      const bool packs = aligned && i + width <= count;
      A value[width], gradient[width], mean[width] = {}, square[width] = {};
      load_row<E>(value, p, i, count, packs, A(0));
      load_row<E>(gradient, g, i, count, packs, A(0));
      if (state.reads_m) load_row<E>(mean, m, i, count, packs, A(0));
      if (state.has_v) load_row<E>(square, v, i, count, packs, A(0));
#pragma unroll
      for (int k = 0; k < width; ++k) step(value[k], gradient[k], mean[k], square[k]);
      store_row<E>(p, i, count, packs, value);
      if (state.writes_m) store_row<E>(m, i, count, packs, mean);
      if (state.has_v) store_row<E>(v, i, count, packs, square);
    }
  }
}

template <class A>
struct Sgd {
  A lr, momentum, fresh, decay;
  bool nesterov, maximize, first, with_momentum, with_decay;
};

template <class E, int N>
__global__ void __launch_bounds__(kThreads) sgd_step(StepItems<N> items, Sgd<typename E::A> sgd) {
  using A = typename E::A;
  for_items<E>(items, {sgd.with_momentum && !sgd.first, sgd.with_momentum, false}, [&](A& value, A gradient, A& mean, A&) {
    A step = sgd.maximize ? -gradient : gradient;
    if (sgd.with_decay) step += sgd.decay * value;
    if (sgd.with_momentum) {
      mean = sgd.first ? step : multiply(sgd.momentum, mean) + sgd.fresh * step;
      step = sgd.nesterov ? step + sgd.momentum * mean : mean;
    }
    value -= sgd.lr * step;
  });
}

template <class A>
struct AdamW {
  A keep, step_size, beta1, fresh1, beta2, fresh2, root_bias2, eps;
};

template <class E, int N>
__global__ void __launch_bounds__(kThreads) adamw_step(StepItems<N> items, AdamW<typename E::A> adam) {
  using A = typename E::A;
  for_items<E>(items, {true, true, true}, [&](A& value, A gradient, A& mean, A& square) {
    // Of two products one is rounded on its own: which one, the compiler might choose differently for another number of items.
    mean = multiply(adam.beta1, mean) + adam.fresh1 * gradient;
    square = multiply(adam.beta2, square) + adam.fresh2 * gradient * gradient;
    value = value * adam.keep - adam.step_size * mean / (sqrt_of(square) / adam.root_bias2 + adam.eps);
  });
}

/// Calls launch(items) for each N items that are not empty.
template <int N, class F>
void in_lists_of(const OptimItem* list, std::int64_t count, F launch) {
  StepItems<N> items{};
  for (std::int64_t i = 0; i < count; ++i) {
    if (list[i].n <= 0) continue;
    items.item[items.count] = list[i];
    items.first_tile[items.count] = items.tiles;
    items.tiles += (list[i].n - 1) / kStepTile + 1;
    if (++items.count < N) continue;
    launch(items);
    items.tiles = 0, items.count = 0;
  }
  if (items.count > 0) launch(items);
}
/// One launch for up to kManyItems of them.
template <class F>
void in_lists(const OptimItem* list, std::int64_t count, F launch) {
  if (count <= kFewItems) in_lists_of<kFewItems>(list, count, launch);
  else in_lists_of<kManyItems>(list, count, launch);
}

void sgd(const SgdArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("sgd", "a floating-point dtype", args.dtype);
  (void)with_floating(args.dtype, [&]<class E>() {
    using A = typename E::A;
    const Sgd<A> sgd{static_cast<A>(args.lr), static_cast<A>(args.momentum), static_cast<A>(1.0 - args.dampening), static_cast<A>(args.weight_decay),
                     args.nesterov,           args.maximize,                 args.first,                           args.momentum != 0.0,
                     args.weight_decay != 0.0};
    in_lists(args.items, args.count, [&]<int N>(const StepItems<N>& items) {
      run("sgd", sgd_step<E, N>, blocks_for(items.tiles, 1), kThreads, stream, items, sgd);
    });
  });
}

void adamw(const AdamWArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("adamw", "a floating-point dtype", args.dtype);
  const auto power = [](double base, std::int64_t exponent) {
    double result = 1.0;
    for (; exponent > 0; exponent >>= 1, base *= base)
      if ((exponent & 1) != 0) result *= base;
    return result;
  };
  const double bias1 = 1.0 - power(args.beta1, args.step), bias2 = 1.0 - power(args.beta2, args.step);
  (void)with_floating(args.dtype, [&]<class E>() {
    using A = typename E::A;
    const AdamW<A> adam{static_cast<A>(1.0 - args.lr * args.weight_decay), static_cast<A>(args.lr / bias1),
                        static_cast<A>(args.beta1),                        static_cast<A>(1.0 - args.beta1),
                        static_cast<A>(args.beta2),                        static_cast<A>(1.0 - args.beta2),
                        static_cast<A>(std::sqrt(bias2)),                  static_cast<A>(args.eps)};
    in_lists(args.items, args.count, [&]<int N>(const StepItems<N>& items) {
      run("adamw", adamw_step<E, N>, blocks_for(items.tiles, 1), kThreads, stream, items, adam);
    });
  });
}

}  // namespace braid::cuda
