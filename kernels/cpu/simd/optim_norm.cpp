#include <braid/core/internal/kernel_args/optim.hpp>

#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/elements.hpp"
#include "cpu/simd/functions.hpp"
#include "cpu/simd/optim_items.hpp"

// The total norm of a list of tensors, and their multiplication by one number.
namespace braid::cpu::BRAID_ISA {
namespace {

/// The terms of a norm, in double, and how they are joined.
struct Order {
  enum class Kind { squares, magnitudes, largest, nonzeros, powers } kind;
  double order;
  explicit Order(double p)
      : kind(p == 2                 ? Kind::squares
             : p == 1               ? Kind::magnitudes
             : p == __builtin_inf() ? Kind::largest
             : p == 0               ? Kind::nonzeros
                                    : Kind::powers),
        order(p) {}
  template <class V> BRAID_INLINE V join(V a, V b) const {
    if (kind == Kind::largest) return ((b > a) | (b != b)) ? b : a;  // a NaN stays
    return a + b;
  }
  [[nodiscard]] BRAID_INLINE VD term(VD x) const {
    switch (kind) {
      case Kind::squares: return x * x;
      case Kind::nonzeros: return x != 0.0 ? splat<VD>(1.0) : splat<VD>(0.0);
      case Kind::powers: return wide::pow(magnitude_of(x), splat<VD>(order));
      default: return magnitude_of(x);
    }
  }
  [[nodiscard]] double root(double sum) const {
    if (kind == Kind::squares) return __builtin_sqrt(sum);
    return kind == Kind::powers ? wide::pow(splat<VD>(sum), splat<VD>(1 / order))[0] : sum;
  }
};

/// The joined terms of [begin, end). A partial sum has at most 64 terms, so that the rounding of
/// float64 stays small.
template <class E>
BRAID_INLINE double joined_terms(const Order& order, const typename E::T* p, std::int64_t begin,
                                 std::int64_t end) {
  constexpr int kTerms = 64;
  VD total{};
  while (begin < end) {
    VD part{};
    for (int term = 0; term < kTerms && begin < end; ++term, begin += E::kLanes) {
      const std::int64_t left = end - begin;
      const auto v =  // lanes past the end are 0
          load_lanes<E>(p + begin, left < E::kLanes ? static_cast<int>(left) : E::kLanes);
      if constexpr (std::is_same_v<typename E::V, VD>) {
        part = order.join(part, order.term(v));
      } else {
        const DoublePair both = to_double(v);
        part = order.join(part, order.join(order.term(both.low), order.term(both.high)));
      }
    }
    total = order.join(total, part);
  }
  double sum = 0;
  for (int k = 0; k < static_cast<int>(sizeof(VD) / sizeof(double)); ++k)
    sum = order.join(sum, total[k]);
  return sum;
}

/// The tiles' sums are joined in their order.
template <class E> void total_norm_of(const TotalNormArgs& args, Stream& stream) {
  using T = typename E::T;
  using A = Lane<typename E::V>;
  const Order order(args.order);
  double sums[kMostTiles] = {};
  const std::int64_t tiles = for_tiles(
      args.items, args.count, stream,
      [&](const OptimItem& item, std::int64_t begin, std::int64_t end, std::int64_t tile) {
        const double sum = joined_terms<E>(order, static_cast<const T*>(item.p), begin, end);
        sums[tile] = order.join(sums[tile], sum);
      });
  double sum = 0;
  for (std::int64_t t = 0; t < tiles; ++t) sum = order.join(sum, sums[t]);
  const A norm = static_cast<A>(order.root(sum));
  *static_cast<A*>(args.norm) = norm;
  if (!args.factor) return;
  const A ratio = static_cast<A>(args.max_norm) / (norm + static_cast<A>(1e-6));
  *static_cast<A*>(args.factor) = ratio >= A(1) ? A(1) : ratio;  // a NaN stays
}

template <class E> void scale_list_of(const ScaleListArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  const auto by = *static_cast<const Lane<V>*>(args.factor);
  if (by == Lane<V>(1)) return;
  const V factor = splat<V>(by);
  for_items(args.items, args.count, stream,
            [&](const OptimItem& item, std::int64_t begin, std::int64_t end) {
              T* const p = static_cast<T*>(item.p);
              for (; begin < end; begin += E::kLanes) {
                const std::int64_t left = end - begin;
                const int k = left < E::kLanes ? static_cast<int>(left) : E::kLanes;
                store_lanes<E>(p + begin, load_lanes<E>(p + begin, k) * factor, k);
              }
            });
}

}  // namespace

void total_norm(const TotalNormArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("total_norm", "a floating-point dtype", args.dtype);
  with_floating(args.dtype, [&]<class E>() {
    total_norm_of<E>(args, stream);
    return true;
  });
}

void scale_list(const ScaleListArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("scale_list", "a floating-point dtype", args.dtype);
  with_floating(args.dtype, [&]<class E>() {
    scale_list_of<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
