#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/elements.hpp"

// Optimizer steps: parameters, gradients and state are read and written once. The elements of all items form one line that is cut in tiles, so that many
// small parameters are one piece of work.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kStepTile = 8 * 1024;

/// Calls f(item, begin, end) for all elements of all items. Tiles cut the line of all items; a tile finds its first item by walking the list.
template <class F>
BRAID_INLINE void for_items(const OptimItem* items, std::int64_t count, Stream& stream, F f) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += items[i].n > 0 ? items[i].n : 0;
  if (total <= kStepTile) {
    for (std::int64_t i = 0; i < count; ++i)
      if (items[i].n > 0) f(items[i], 0, items[i].n);
    return;
  }
  // At most 1024 tiles, so that walking a long list of items stays cheap.
  std::int64_t size = kStepTile;
  while (size * 1024 < total) size *= 2;
  const auto tile = [&](std::int64_t t) {
    std::int64_t skip = t * size, left = size;
    for (std::int64_t i = 0; i < count && left > 0; ++i) {
      const std::int64_t n = items[i].n > 0 ? items[i].n : 0;
      if (skip >= n) {
        skip -= n;
        continue;
      }
      const std::int64_t end = n - skip < left ? n : skip + left;
      f(items[i], skip, end);
      left -= end - skip;
      skip = 0;
    }
  };
  parallel_for(stream, (total + size - 1) / size, tile);
}

/// Calls f(i, k) for whole vectors (k = lanes) and the rest of [begin, end).
template <class E, class F>
BRAID_INLINE void for_vectors(std::int64_t begin, std::int64_t end, F f) {
  for (; begin + E::kLanes <= end; begin += E::kLanes) f(begin, E::kLanes);
  if (begin < end) f(begin, static_cast<int>(end - begin));
}
template <class E>
BRAID_INLINE typename E::V load_lanes(const typename E::T* p, int k) {
  return k == E::kLanes ? E::load(p) : E::load_first(p, k);
}
template <class E>
BRAID_INLINE void store_lanes(typename E::T* p, typename E::V v, int k) {
  if (k == E::kLanes) E::store(p, v);
  else E::store_first(p, v, k);
}

template <class E>
void sgd_of(const SgdArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  const V lr = splat<V>(static_cast<A>(args.lr)), momentum = splat<V>(static_cast<A>(args.momentum)), decay = splat<V>(static_cast<A>(args.weight_decay));
  const V fresh = splat<V>(static_cast<A>(1.0 - args.dampening)), sign = splat<V>(args.maximize ? A{-1} : A{1});
  const bool with_momentum = args.momentum != 0.0, with_decay = args.weight_decay != 0.0;
  for_items(args.items, args.count, stream, [&](const OptimItem& item, std::int64_t begin, std::int64_t end) {
    T* p = static_cast<T*>(item.p);
    const T* g = static_cast<const T*>(item.g);
    T* m = static_cast<T*>(item.m);
    for_vectors<E>(begin, end, [&](std::int64_t i, int k) {
      const V value = load_lanes<E>(p + i, k);
      V step = load_lanes<E>(g + i, k) * sign;
      if (with_decay) step = step + decay * value;
      if (with_momentum) {
        const V mean = args.first ? step : momentum * load_lanes<E>(m + i, k) + fresh * step;
        store_lanes<E>(m + i, mean, k);
        step = args.nesterov ? step + momentum * mean : mean;
      }
      store_lanes<E>(p + i, value - lr * step, k);
    });
  });
}

BRAID_INLINE double power(double base, std::int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if ((exponent & 1) != 0) result *= base;
  return result;
}

template <class E>
void adamw_of(const AdamWArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  using A = Lane<V>;
  const double bias1 = 1.0 - power(args.beta1, args.step), bias2 = 1.0 - power(args.beta2, args.step);
  const V keep = splat<V>(static_cast<A>(1.0 - args.lr * args.weight_decay)), step_size = splat<V>(static_cast<A>(args.lr / bias1));
  const V beta1 = splat<V>(static_cast<A>(args.beta1)), fresh1 = splat<V>(static_cast<A>(1.0 - args.beta1));
  const V beta2 = splat<V>(static_cast<A>(args.beta2)), fresh2 = splat<V>(static_cast<A>(1.0 - args.beta2));
  const V root_bias2 = splat<V>(static_cast<A>(sqrt(splat<VD>(bias2))[0])), eps = splat<V>(static_cast<A>(args.eps));
  for_items(args.items, args.count, stream, [&](const OptimItem& item, std::int64_t begin, std::int64_t end) {
    T* p = static_cast<T*>(item.p);
    const T* g = static_cast<const T*>(item.g);
    T* m = static_cast<T*>(item.m);
    T* v = static_cast<T*>(item.v);
    for_vectors<E>(begin, end, [&](std::int64_t i, int k) {
      const V gradient = load_lanes<E>(g + i, k);
      const V mean = beta1 * load_lanes<E>(m + i, k) + fresh1 * gradient;
      const V square = beta2 * load_lanes<E>(v + i, k) + fresh2 * gradient * gradient;
      store_lanes<E>(m + i, mean, k);
      store_lanes<E>(v + i, square, k);
      store_lanes<E>(p + i, load_lanes<E>(p + i, k) * keep - step_size * mean / (sqrt(square) / root_bias2 + eps), k);
    });
  });
}

}  // namespace

void sgd(const SgdArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("sgd", "a floating-point dtype", args.dtype);
  with_floating(args.dtype, [&]<class E>() {
    sgd_of<E>(args, stream);
    return true;
  });
}

void adamw(const AdamWArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("adamw", "a floating-point dtype", args.dtype);
  with_floating(args.dtype, [&]<class E>() {
    adamw_of<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
