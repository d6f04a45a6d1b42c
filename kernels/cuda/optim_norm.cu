#include "cuda/device/group.cuh"
#include "cuda/device/item_lists.cuh"
#include "cuda/device/row.cuh"
#include "cuda/device/tickets.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"

// The total norm of a list of tensors, and their multiplication by one number. For up to 540
// tensors each is one launch.
// Order   the number of blocks depends only on the sizes. A thread adds the trees of its packs, in
//         double; a block adds its threads as a tree, and the last one the blocks.
namespace braid::cuda {

inline constexpr unsigned kNormBlocks = 2048;  // for each launch, at most

enum class NormKind { squares, magnitudes, largest, nonzeros, powers };
inline NormKind norm_kind(double order) {
  return order == 2          ? NormKind::squares
         : order == 1        ? NormKind::magnitudes
         : std::isinf(order) ? NormKind::largest
         : order == 0        ? NormKind::nonzeros
                             : NormKind::powers;
}

/// How the terms of a norm are joined.
struct NormJoiner {
  NormKind kind;
  template <class A> BRAID_DEVICE A join(A a, A b) const {
    if (kind == NormKind::largest) return is_nan(a) || a > b ? a : b;  // a NaN in b stays too
    return a + b;
  }
};
template <class A> BRAID_DEVICE A norm_term(NormKind kind, A order, A x) {
  switch (kind) {
    case NormKind::squares: return x * x;
    case NormKind::nonzeros: return x != A(0) ? A(1) : A(0);
    case NormKind::powers: return pow_of(abs_of(x), order);
    default: return abs_of(x);
  }
}
template <int N, class A> BRAID_DEVICE A joined(const NormJoiner& joiner, const A* terms) {
  if constexpr (N == 1) return terms[0];
  else return joiner.join(joined<N / 2>(joiner, terms), joined<N / 2>(joiner, terms + N / 2));
}

/// What the last block of the last launch does with the parts of all blocks and launches.
template <class A> struct NormResult {
  double* parts;
  unsigned* counter;
  int count;
  double order;
  A max_norm;
  A *norm, *factor;  // factor: null unless asked for
};

/// The norm, and the factor that limits it to max_norm, or 1. For one block.
template <class A>
BRAID_DEVICE void norm_of_parts(const NormJoiner& joiner, const NormResult<A>& to, double* part) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < to.count; i += kThreads)
    sum = joiner.join(sum, to.parts[i]);
  sum = BlockGroup<double>{part}.join(joiner, sum);
  if (threadIdx.x != 0) return;
  if (joiner.kind == NormKind::squares) sum = sqrt_of(sum);
  if (joiner.kind == NormKind::powers) sum = pow_of(sum, 1.0 / to.order);
  const A total = static_cast<A>(sum);
  *to.norm = total;
  if (!to.factor) return;
  const A ratio = to.max_norm / (total + A(1e-6));
  *to.factor = ratio >= A(1) ? A(1) : ratio;  // a NaN stays
}

/// Each block joins the terms of its tiles, which is part `first` + block. In the last launch the
/// last block joins the parts. `order` is used only by powers. One kernel has the usual norm,
/// another one all others.
template <class E, int N, bool squares>
__global__ void __launch_bounds__(kThreads)
    norm_parts(StepItems<N> items, NormKind kind_of_others, typename E::A order, int first,
               NormResult<typename E::A> to) {
  using T = typename E::T;
  using A = typename E::A;
  constexpr int width = kWidest<T>, rounds = static_cast<int>(kStepTile) / (kThreads * width);
  const NormKind kind = squares ? NormKind::squares : kind_of_others;
  const NormJoiner joiner{kind};
  SIMT_SHARED(double, part, [kWarps]);
  double sum = 0;
  for (std::int64_t tile = blockIdx.x; tile < items.tiles; tile += gridDim.x) {
    const TileOfItem of = tile_of(items, tile);
    const T* const p = static_cast<const T*>(of.item->p) + of.begin;
    const bool packs = is_aligned<width>(p);
#pragma unroll
    for (int r = 0; r < rounds; ++r) {
      const int at = (r * kThreads + static_cast<int>(threadIdx.x)) * width;
      if (at >= of.count) continue;
      A v[width];
      load_row<E>(v, p, at, of.count, packs && at + width <= of.count, A(0));
#pragma unroll
      for (int k = 0; k < width; ++k) v[k] = norm_term(kind, order, v[k]);
      sum = joiner.join(sum, static_cast<double>(joined<width>(joiner, v)));
    }
  }
  sum = BlockGroup<double>{part}.join(joiner, sum);
  if (threadIdx.x == 0) to.parts[first + static_cast<int>(blockIdx.x)] = sum;
  if (first + static_cast<int>(gridDim.x) < to.count) return;
  if (arrives_last(to.counter, gridDim.x)) norm_of_parts(joiner, to, part);
}

template <class E, int N>
__global__ void __launch_bounds__(kThreads)
    scale_items(StepItems<N> items, const typename E::A* factor) {
  using T = typename E::T;
  using A = typename E::A;
  constexpr int width = kWidest<T>;
  const A by = *factor;
  if (by == A(1)) return;
  for (std::int64_t tile = blockIdx.x; tile < items.tiles; tile += gridDim.x) {
    const TileOfItem of = tile_of(items, tile);
    T* const p = static_cast<T*>(of.item->p) + of.begin;
    const bool packs = is_aligned<width>(p);
    for (int at = static_cast<int>(threadIdx.x) * width; at < of.count; at += kThreads * width) {
      const bool whole = packs && at + width <= of.count;
      A v[width];
      load_row<E>(v, p, at, of.count, whole, A(0));
#pragma unroll
      for (int k = 0; k < width; ++k) v[k] *= by;
      store_row<E>(p, at, of.count, whole, v);
    }
  }
}

unsigned norm_blocks(std::int64_t tiles) {
  const unsigned blocks = blocks_for(tiles, 1);
  return blocks < kNormBlocks ? blocks : kNormBlocks;
}

void total_norm(const TotalNormArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("total_norm", "a floating-point dtype", args.dtype);
  const NormKind kind = norm_kind(args.order);
  (void)with_floating(args.dtype, [&]<class E>() {
    using A = typename E::A;
    int parts = 0;
    in_lists(args.items, args.count,
             [&](const auto& items) { parts += static_cast<int>(norm_blocks(items.tiles)); });
    const bool empty = parts == 0;  // one block with nothing to add
    if (empty) parts = 1;
    const Scratch scratch(static_cast<std::size_t>(parts) * sizeof(double), stream);
    const NormResult<A> to{static_cast<double*>(scratch.data()),
                           tickets_of(stream),
                           parts,
                           args.order,
                           static_cast<A>(args.max_norm),
                           static_cast<A*>(args.norm),
                           static_cast<A*>(args.factor)};
    int first = 0;
    const auto launch = [&]<int N>(const StepItems<N>& items) {
      const unsigned blocks = norm_blocks(items.tiles);
      const auto kernel =
          kind == NormKind::squares ? norm_parts<E, N, true> : norm_parts<E, N, false>;
      run("total_norm", kernel, blocks, kThreads, stream, items, kind, static_cast<A>(args.order),
          first, to);
      first += static_cast<int>(blocks);
    };
    if (empty) launch(StepItems<kFewItems>{});
    else in_lists(args.items, args.count, launch);
  });
}

void scale_list(const ScaleListArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("scale_list", "a floating-point dtype", args.dtype);
  (void)with_floating(args.dtype, [&]<class E>() {
    in_lists(args.items, args.count, [&]<int N>(const StepItems<N>& items) {
      run("scale_list", scale_items<E, N>, blocks_for(items.tiles, 1), kThreads, stream, items,
          static_cast<const typename E::A*>(args.factor));
    });
  });
}

}  // namespace braid::cuda
