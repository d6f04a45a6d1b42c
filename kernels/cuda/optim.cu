#include "cuda/device/loop.cuh"
#include "cuda/device/math.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"
#include "cuda/device/run.cuh"

// Optimizer steps: parameters, gradients and state are read and written once. The elements of many items form one line of tiles, so that many small
// parameters are one launch; the list of items travels in the kernel's arguments, without an allocation or a copy.
namespace braid::cuda {

inline constexpr int kStepItems = 60;             // of one launch: its arguments stay under 4 KiB
inline constexpr std::int64_t kStepTile = 2048;  // elements

struct StepItems {
  OptimItem item[kStepItems];
  std::int64_t first_tile[kStepItems];
  std::int64_t tiles;
  int count;
};

/// Calls step(item, i) for this thread's elements.
template <class F>
BRAID_DEVICE void for_items(const StepItems& items, F step) {
  for (std::int64_t tile = blockIdx.x; tile < items.tiles; tile += gridDim.x) {
    int low = 0;  // the last item that starts at or before the tile
    for (int high = items.count; high - low > 1;) {
      const int middle = (low + high) / 2;
      if (items.first_tile[middle] <= tile) low = middle;
      else high = middle;
    }
    const OptimItem item = items.item[low];
    const std::int64_t begin = (tile - items.first_tile[low]) * kStepTile;
    const std::int64_t end = item.n - begin < kStepTile ? item.n : begin + kStepTile;
    for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) step(item, i);
  }
}

template <class A>
struct Sgd {
  A lr, momentum, fresh, decay;
  bool nesterov, maximize, first, with_momentum, with_decay;
};

template <class E>
__global__ void __launch_bounds__(kThreads) sgd_step(StepItems items, Sgd<typename E::A> sgd) {
  using T = typename E::T;
  using A = typename E::A;
  for_items(items, [&](const OptimItem& item, std::int64_t i) {
    T* const p = static_cast<T*>(item.p) + i;
    const A value = E::load(*p), gradient = E::load(static_cast<const T*>(item.g)[i]);
    A step = sgd.maximize ? -gradient : gradient;
    if (sgd.with_decay) step += sgd.decay * value;
    if (sgd.with_momentum) {
      T* const m = static_cast<T*>(item.m) + i;
      const A mean = sgd.first ? step : sgd.momentum * E::load(*m) + sgd.fresh * step;
      *m = E::store(mean);
      step = sgd.nesterov ? step + sgd.momentum * mean : mean;
    }
    *p = E::store(value - sgd.lr * step);
  });
}

template <class A>
struct AdamW {
  A keep, step_size, beta1, fresh1, beta2, fresh2, root_bias2, eps;
};

template <class E>
__global__ void __launch_bounds__(kThreads) adamw_step(StepItems items, AdamW<typename E::A> adam) {
  using T = typename E::T;
  using A = typename E::A;
  for_items(items, [&](const OptimItem& item, std::int64_t i) {
    T* const p = static_cast<T*>(item.p) + i;
    T* const m = static_cast<T*>(item.m) + i;
    T* const v = static_cast<T*>(item.v) + i;
    const A gradient = E::load(static_cast<const T*>(item.g)[i]);
    const A mean = adam.beta1 * E::load(*m) + adam.fresh1 * gradient;
    const A square = adam.beta2 * E::load(*v) + adam.fresh2 * gradient * gradient;
    *m = E::store(mean);
    *v = E::store(square);
    *p = E::store(E::load(*p) * adam.keep - adam.step_size * mean / (sqrt_of(square) / adam.root_bias2 + adam.eps));
  });
}

/// Calls launch(items) for each kStepItems items that are not empty.
template <class F>
void in_lists(const OptimItem* list, std::int64_t count, F launch) {
  StepItems items{};
  for (std::int64_t i = 0; i < count; ++i) {
    if (list[i].n <= 0) continue;
    items.item[items.count] = list[i];
    items.first_tile[items.count] = items.tiles;
    items.tiles += (list[i].n - 1) / kStepTile + 1;
    if (++items.count < kStepItems) continue;
    launch(items);
    items.tiles = 0, items.count = 0;
  }
  if (items.count > 0) launch(items);
}

void sgd(const SgdArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("sgd", "a floating-point dtype", args.dtype);
  (void)with_floating(args.dtype, [&]<class E>() {
    using A = typename E::A;
    const Sgd<A> sgd{static_cast<A>(args.lr), static_cast<A>(args.momentum), static_cast<A>(1.0 - args.dampening), static_cast<A>(args.weight_decay),
                     args.nesterov,           args.maximize,                 args.first,                           args.momentum != 0.0,
                     args.weight_decay != 0.0};
    in_lists(args.items, args.count, [&](const StepItems& items) { run("sgd", sgd_step<E>, blocks_for(items.tiles, 1), kThreads, stream, items, sgd); });
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
    in_lists(args.items, args.count, [&](const StepItems& items) { run("adamw", adamw_step<E>, blocks_for(items.tiles, 1), kThreads, stream, items, adam); });
  });
}

}  // namespace braid::cuda
