#pragma once
#include <braid/core/internal/kernel_args/gemm.hpp>

#include "cuda/device/gemm.cuh"
#include "cuda/gemm_plan.hpp"

// Products without tiles: tiny ones, with one block per matrix, and the second pass over the parts
// of a split k.
namespace braid::cuda {

/// Each thread computes whole elements of C, directly from global memory: no tile is padded with
/// zeros, and no thread waits at a barrier. The row sums are further elements.
template <class E, bool ta, bool tb> BRAID_DEVICE void gemm_tiny_block(const GemmParams<E>& p) {
  using A = typename E::A;
  const int n = static_cast<int>(p.n), k = static_cast<int>(p.k),
            elements = static_cast<int>(p.m * p.n);
  const int all = elements + (E::kFloating && p.sum_a != nullptr ? static_cast<int>(p.m) : 0);
  const std::int64_t a_row = ta ? 1 : p.lda, a_step = ta ? p.lda : 1, b_step = tb ? 1 : p.ldb,
                     b_column = tb ? p.ldb : 1;
  for (std::int64_t matrix = blockIdx.x; matrix < p.batch; matrix += gridDim.x) {
    for (int e = static_cast<int>(threadIdx.x); e < all; e += kThreads) {
      if (e < elements) {
        const int i = e / n, j = e % n;
        const typename E::T* a = p.a + matrix * p.batch_a + i * a_row;
        const typename E::T* b = p.b + matrix * p.batch_b + j * b_column;
        A sum{0};
#pragma unroll 4
        for (int step = 0; step < k; ++step, a += a_step, b += b_step)
          sum += E::load(*a) * E::load(*b);
        typename E::T* const c = p.c + matrix * p.batch_c + i * p.ldc + j;
        finish_with_epilogue<1, E>(p, c, &sum, p.bias == nullptr ? nullptr : p.bias + j, true, 1);
      } else if constexpr (E::kFloating) {
        const int i = e - elements;
        RowSum<A> sum{};
        for (int first = 0; first < k; first += kRowGroup)
          sum.add(tree_sum<kRowGroup, A>([&](int g) {
            return first + g < k ? E::load(p.a[i * a_row + (first + g) * a_step]) : A{0};
          }));
        p.sum_a[i] = E::store(sum.value());
      }
    }
  }
}

template <class E>
__global__ void __launch_bounds__(kThreads) linear_forward_tiny(GemmParams<E> p) {
  gemm_tiny_block<E, false, true>(p);
}
template <class E>
__global__ void __launch_bounds__(kThreads) linear_backward_input_tiny(GemmParams<E> p) {
  gemm_tiny_block<E, false, false>(p);
}
template <class E>
__global__ void __launch_bounds__(kThreads) linear_backward_weight_tiny(GemmParams<E> p) {
  gemm_tiny_block<E, true, false>(p);
}
template <class E>
__global__ void __launch_bounds__(kThreads) matmul_both_transposed_tiny(GemmParams<E> p) {
  gemm_tiny_block<E, true, true>(p);
}

/// The whole backward of a tiny layer: one block computes dx = dy W, the other dW = dyᵀ x and db.
template <class E>
__global__ void __launch_bounds__(kThreads)
    linear_backward_tiny(GemmParams<E> input, GemmParams<E> weight) {
  if (blockIdx.y == 0) gemm_tiny_block<E, false, false>(input);
  else gemm_tiny_block<E, true, false>(weight);
}

/// Computes Width neighbouring elements of C from element e on: adds their parts in the order of k,
/// then finishes them.
template <int Width, class E>
BRAID_DEVICE void join_elements(const GemmParams<E>& p, std::int64_t e, const Divider& by_n,
                                const Divider& by_m, bool narrow) {
  const std::int64_t elements = p.batch * p.m * p.n;
  auto sum = load_pack<Width>(p.partial + e);
#pragma unroll 2
  for (std::int64_t s = 1; s < p.splits; ++s) {
    const auto part = load_pack<Width>(p.partial + s * elements + e);
#pragma unroll
    for (int k = 0; k < Width; ++k) sum.v[k] += part.v[k];
  }
  const std::int64_t flat = by_n.divide(e, narrow), j = e - flat * p.n,
                     matrix = by_m.divide(flat, narrow), i = flat - matrix * p.m;
  typename E::T* const c = p.c + matrix * p.batch_c + i * p.ldc + j;
  const typename E::T* const bias =
      p.bias == nullptr ? nullptr : p.bias + matrix * p.batch_bias + j;
  if constexpr (Width == 4) {
    finish_four<E>(p, c, sum.v, bias, 4);
  } else {
    finish_with_epilogue<1, E>(p, c, sum.v, bias, true, 1);
  }
}

/// The second pass over a split product. Rows whose length is a multiple of 4 are processed in
/// fours.
template <class E>
__global__ void __launch_bounds__(kThreads)
    gemm_join(GemmParams<E> p, Divider by_n, Divider by_m, bool narrow) {
  using A = typename E::A;
  const int width = p.packs_partial ? 4 : 1;
  const std::int64_t elements = p.batch * p.m * p.n,
                     all = elements + (E::kFloating && p.sum_a != nullptr ? p.m : 0);
  for (std::int64_t e = grid_thread() * width; e < all; e += grid_threads() * width) {
    if (e < elements) {
      if (p.packs_partial) join_elements<4>(p, e, by_n, by_m, narrow);
      else join_elements<1>(p, e, by_n, by_m, narrow);
    } else if constexpr (E::kFloating) {
      for (std::int64_t i = e - elements; i < e - elements + width && i < p.m; ++i) {
        RowSum<A> sum{};
        for (std::int64_t s = 0; s < p.splits; ++s) sum.add(p.partial_sums[s * p.m + i]);
        p.sum_a[i] = E::store(sum.value());
      }
    }
  }
}

template <class E> void launch_tiny(const GemmParams<E>& p, bool ta, bool tb, Stream& stream) {
  const auto kernel = ta   ? tb ? matmul_both_transposed_tiny<E> : linear_backward_weight_tiny<E>
                      : tb ? linear_forward_tiny<E>
                           : linear_backward_input_tiny<E>;
  run("matmul", kernel, blocks_for(p.batch, 1), kThreads, stream, p);
}

/// Converts args to kernel parameters.
template <class E> GemmParams<E> gemm_params(const GemmArgs& args, const GemmPlan& plan) {
  using T = typename E::T;
  const auto packs = [&]<int width>(const void* p, std::int64_t ld, std::int64_t batch) {
    return ld % width == 0 && (args.batch == 1 || batch % width == 0) &&
           is_aligned<width>(static_cast<const T*>(p));
  };
  constexpr int eight = sizeof(T) == 2 ? 8 : 4;
  return {.a = static_cast<const T*>(args.a),
          .b = static_cast<const T*>(args.b),
          .c = static_cast<T*>(args.c),
          .bias = static_cast<const T*>(args.bias),
          .sum_a = static_cast<T*>(args.sum_a),
          .partial = nullptr,
          .partial_sums = nullptr,
          .m = args.m,
          .n = args.n,
          .k = args.k,
          .batch = args.batch,
          .lda = args.lda,
          .ldb = args.ldb,
          .ldc = args.ldc,
          .batch_a = args.batch_a,
          .batch_b = args.batch_b,
          .batch_c = args.batch_c,
          .splits = plan.splits,
          .depth = plan.depth,
          .first = 0,
          .row_tiles = 0,
          .column_tiles = 0,
          .other = static_cast<T*>(args.other),
          .epilogue = args.epilogue,
          .accumulate = args.accumulate,
          .packs_a = packs.template operator()<eight>(args.a, args.lda, args.batch_a),
          .packs_b = packs.template operator()<eight>(args.b, args.ldb, args.batch_b),
          .packs_c = packs.template operator()<4>(args.c, args.ldc, args.batch_c) &&
                     is_aligned<4>(static_cast<const T*>(args.other)),
          .packs_partial = args.n % 4 == 0};
}

template <class E> void launch_linear_backward(const GemmPairArgs& args, Stream& stream) {
  const GemmPlan plan{GemmTileKind::tiny, 1, 0};
  run("linear_backward", linear_backward_tiny<E>, dim3(1, 2), kThreads, stream,
      gemm_params<E>(args.first, plan), gemm_params<E>(args.second, plan));
}

/// Queues a product in tiles, which tiles(params) queues, and the second pass if k is split.
/// batch_bias: the distance between the biases of two products; 0 if they have one.
template <class E, class F>
void launch_parts(const GemmArgs& args, const GemmPlan& plan, Stream& stream, F tiles,
                  std::int64_t batch_bias = 0) {
  using A = typename E::A;
  GemmParams<E> p = gemm_params<E>(args, plan);
  p.batch_bias = batch_bias;
  if (plan.splits <= 1) return tiles(p);
  const std::int64_t elements = args.batch * args.m * args.n,
                     sums = args.sum_a != nullptr ? args.m : 0;
  const Scratch scratch(static_cast<std::size_t>(plan.splits * (elements + sums)) * sizeof(A),
                        stream);
  p.partial = static_cast<A*>(scratch.data());
  p.partial_sums = p.partial + plan.splits * elements;
  tiles(p);
  const unsigned blocks = blocks_for(elements + sums, kThreads * (p.packs_partial ? 4 : 1));
  run("matmul", gemm_join<E>, blocks, kThreads, stream, p, Divider(args.n), Divider(args.m),
      elements < std::int64_t{1} << 31);
}

/// Queues a product as planned.
template <class E, class F>
void launch_gemm(const GemmArgs& args, const GemmPlan& plan, Stream& stream, F tiles) {
  if (plan.tile == GemmTileKind::tiny)
    launch_tiny(gemm_params<E>(args, plan), args.ta, args.tb, stream);
  else launch_parts<E>(args, plan, stream, tiles);
}

}  // namespace braid::cuda
