#include "cuda/softmax_long.hpp"

#include "cuda/device/row.cuh"

// Softmax and log-softmax of rows of more than 8192 elements, a block each, and their
// gradients. The result and an operand may be the same memory.
// Traffic  a row that fits in the registers of a block, in its stored type, is read once: 128 KiB
//          forward, and 64 KiB of each operand backward. A longer one is read again: an SM has
//          one block forward and two backward, so that their rows are likely in the L2 cache. So is
//          a row that does not begin at a multiple of 16 bytes, whose elements are then read and
//          written in aligned packs, which are others than those that are summed.
// Overlap  a block loads, then reduces, then stores. A row of up to half those sizes needs half the
//          registers, so an SM has two blocks, of which one loads while the other does the rest.
namespace braid::cuda {

inline constexpr int kWideThreads = 512, kLongThreads = 1024;
inline constexpr int kWidePacks = 16;  // of 16 bytes; 64 of the 128 registers that a thread has
/// Blocks of an SM if each of their threads holds `packs` packs.
template <int packs> inline constexpr int kWideBlocks = packs <= kWidePacks / 2 ? 2 : 1;
template <class A> using WideGroup = BlockGroup<A, kWideThreads>;
template <class A> using LongGroup = BlockGroup<A, kLongThreads>;
/// A row in registers in its stored type, which may begin anywhere.
template <class E, int packs> struct WideRow {
  using T = typename E::T;
  using A = typename E::A;
  static constexpr int kWidth = kWidest<T>, kMost = packs * kWideThreads * kWidth;
  Pack<T, kWidth> v[packs];

  static BRAID_DEVICE int place(int pack) {
    return (static_cast<int>(threadIdx.x) + pack * kWideThreads) * kWidth;
  }
  static BRAID_DEVICE bool reaches(int pack, int n) { return pack * kWideThreads * kWidth < n; }
  BRAID_DEVICE void load(const T* row, int n, bool aligned, A rest) {
#pragma unroll
    for (int c = 0; c < packs; ++c)
      if (reaches(c, n)) v[c] = load_anywhere(row, place(c), n, aligned, E::store(rest));
  }
  BRAID_DEVICE A at(int pack, int k) const { return E::load(v[pack].v[k]); }
};

/// The result from a row's largest element and its sum of exponentials.
template <class A> struct SoftmaxOf {
  A max, shift, factor;
  bool log;
  BRAID_DEVICE SoftmaxOf(A largest, A sum, bool of_log)
      : max(largest), shift(of_log ? log_of(sum) : A(0)), factor(A(1) / sum), log(of_log) {}
  BRAID_DEVICE A operator()(A x) const {
    return log ? (x - max) - shift : exp_of(x - max) * factor;
  }
};
template <class E, int threads, class F>
BRAID_DEVICE void map_row(const typename E::T* x, typename E::T* y, std::int64_t n, F f) {
  constexpr int width = kWidest<typename E::T>;
  const int skew = common_skew(x, y);
  for (std::int64_t j = first_aligned<width>(static_cast<int>(threadIdx.x), skew); j < n;
       j += threads * width) {
    const bool whole = is_whole<width>(j, skew, n);
    typename E::A v[width];
    load_part<E>(v, x, j, n, whole, typename E::A(0));
#pragma unroll
    for (int k = 0; k < width; ++k) v[k] = f(v[k]);
    store_part<E>(y, j, n, whole, v);
  }
}

/// Rows of up to WideRow<E, held>::kMost elements.
template <class E, int held>
__global__ void __launch_bounds__(kWideThreads, kWideBlocks<held>)
    softmax_wide_rows(const typename E::T* x, typename E::T* y, std::int64_t rows, int n,
                      bool packs, bool log) {
  using A = typename E::A;
  using Row = WideRow<E, held>;
  constexpr int width = Row::kWidth;
  SIMT_SHARED(A, part, [kWideThreads / 32]);
  const WideGroup<A> group{part};
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    Row row;
    row.load(x + r * n, n, packs, lowest<A>());
    A max = lowest<A>(), sum = A(0);
#pragma unroll
    for (int c = 0; c < held; ++c) {
      if (!Row::reaches(c, n)) continue;
#pragma unroll
      for (int k = 0; k < width; ++k) max = MaxOfNumbers<A>{}.join(max, row.at(c, k));
    }
    max = group.join(MaxOfNumbers<A>{}, max);
    forget_computed(row.v);
#pragma unroll
    for (int c = 0; c < held; ++c)
      if (Row::reaches(c, n))
        sum += tree_sum<width, A>([&](int k) { return exp_of(row.at(c, k) - max); });
    const SoftmaxOf<A> result(max, group.join(Sum<A>{}, sum), log);
    forget_computed(row.v);
    if (!packs) {
      map_row<E, kWideThreads>(x + r * n, y + r * n, n, result);
      continue;
    }
#pragma unroll
    for (int c = 0; c < held; ++c) {
      if (Row::place(c) >= n) continue;
#pragma unroll
      for (int k = 0; k < width; ++k) row.v[c].v[k] = E::store(result(row.at(c, k)));
      store_pack(y + r * n + Row::place(c), row.v[c]);
    }
  }
}
template <class E>
__global__ void __launch_bounds__(kLongThreads)
    softmax_long_rows(const typename E::T* x, typename E::T* y, std::int64_t rows, std::int64_t n,
                      bool packs, bool log) {
  using A = typename E::A;
  SIMT_SHARED(A, part, [kLongThreads / 32]);
  const LongGroup<A> group{part};
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const MaxAndSum<A> all = max_and_sum<E>(group, x + r * n, n, packs);
    map_row<E, kLongThreads>(x + r * n, y + r * n, n, SoftmaxOf<A>(all.max, all.sum, log));
  }
}

/// The gradient of an element from the result, the result's gradient, and the row's sum.
template <class A> BRAID_DEVICE A softmax_gradient(A y, A dy, A sum, bool log) {
  return log ? dy - exp_of(y) * sum : y * (dy - sum);
}
/// Σ y * dy over a pack, of log-softmax Σ dy.
template <class E>
BRAID_DEVICE typename E::A dot_of_packs(const Pack<typename E::T, kWidest<typename E::T>>& y,
                                        const Pack<typename E::T, kWidest<typename E::T>>& dy,
                                        bool log) {
  using A = typename E::A;
  return tree_sum<kWidest<typename E::T>, A>(
      [&](int k) { return log ? E::load(dy.v[k]) : E::load(y.v[k]) * E::load(dy.v[k]); });
}
template <class E, int threads>
BRAID_DEVICE void map_gradient(const typename E::T* y, const typename E::T* dy, typename E::T* dx,
                               std::int64_t n, typename E::A sum, bool log) {
  using A = typename E::A;
  constexpr int width = kWidest<typename E::T>;
  const int skew = common_skew(y, dy, dx);
  for (std::int64_t j = first_aligned<width>(static_cast<int>(threadIdx.x), skew); j < n;
       j += threads * width) {
    const bool whole = is_whole<width>(j, skew, n);
    A out[width], gradient[width];
    load_part<E>(out, y, j, n, whole, A(0));
    load_part<E>(gradient, dy, j, n, whole, A(0));
#pragma unroll
    for (int k = 0; k < width; ++k) gradient[k] = softmax_gradient(out[k], gradient[k], sum, log);
    store_part<E>(dx, j, n, whole, gradient);
  }
}

/// Aligned rows of up to kMostOfTwo<T, packs> elements, whose operands are held.
template <class T, int packs> inline constexpr int kMostOfTwo = kWideThreads * packs * kWidest<T>;
template <class E, int packs>
__global__ void __launch_bounds__(kWideThreads, kWideBlocks<2 * packs>)
    softmax_backward_wide_rows(const typename E::T* y, const typename E::T* dy, typename E::T* dx,
                               std::int64_t rows, int n, bool log) {
  using T = typename E::T;
  using A = typename E::A;
  constexpr int width = kWidest<T>;
  SIMT_SHARED(A, part, [kWideThreads / 32]);
  const WideGroup<A> group{part};
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    Pack<T, width> out[packs], gradient[packs];
    const auto place = [&](int c) { return (group.rank() + c * kWideThreads) * width; };
#pragma unroll
    for (int c = 0; c < packs; ++c) {
      if (place(c) >= n) continue;
      out[c] = load_pack<width>(y + r * n + place(c));
      gradient[c] = load_pack<width>(dy + r * n + place(c));
    }
    A sum = A(0);
#pragma unroll
    for (int c = 0; c < packs; ++c)
      if (place(c) < n) sum += dot_of_packs<E>(out[c], gradient[c], log);
    sum = group.join(Sum<A>{}, sum);
    forget_computed(out);
    forget_computed(gradient);
#pragma unroll
    for (int c = 0; c < packs; ++c) {
      if (place(c) >= n) continue;
#pragma unroll
      for (int k = 0; k < width; ++k)
        out[c].v[k] =
            E::store(softmax_gradient(E::load(out[c].v[k]), E::load(gradient[c].v[k]), sum, log));
      store_pack(dx + r * n + place(c), out[c]);
    }
  }
}
/// All other rows, with the same order of the sum.
template <class E>
__global__ void __launch_bounds__(kWideThreads)
    softmax_backward_long_rows(const typename E::T* y, const typename E::T* dy, typename E::T* dx,
                               std::int64_t rows, std::int64_t n, bool packs, bool log) {
  using T = typename E::T;
  using A = typename E::A;
  constexpr int width = kWidest<T>, together = 2;
  SIMT_SHARED(A, part, [kWideThreads / 32]);
  const WideGroup<A> group{part};
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    A sum = A(0);
    for (std::int64_t j = static_cast<std::int64_t>(group.rank()) * width; j < n;
         j += together * kWideThreads * width) {
      Pack<T, width> out[together], gradient[together];
#pragma unroll
      for (int c = 0; c < together; ++c) {
        const std::int64_t at = j + c * (kWideThreads * width);
        out[c] = load_anywhere(y + r * n, at, n, packs, E::store(A(0)));
        gradient[c] = load_anywhere(dy + r * n, at, n, packs, E::store(A(0)));
      }
#pragma unroll
      for (int c = 0; c < together; ++c)
        if (j + c * (kWideThreads * width) < n) sum += dot_of_packs<E>(out[c], gradient[c], log);
    }
    sum = group.join(Sum<A>{}, sum);
    map_gradient<E, kWideThreads>(y + r * n, dy + r * n, dx + r * n, n, sum, log);
  }
}

void softmax_long(const SoftmaxArgs& args, Stream& stream) {
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    const T* x = static_cast<const T*>(args.x);
    T* y = static_cast<T*>(args.y);
    const auto launch = [&](auto kernel, int threads) {
      run("softmax", kernel, blocks_for(args.rows, 1), threads, stream, x, y, args.rows, args.n,
          rows_in_packs(args.n, x, y), args.log);
    };
    constexpr int all = kWidePacks, half = kWidePacks / 2;
    if constexpr (sizeof(T) < 8)  // rows of double come here only if they are longer than that
      if (args.n <= WideRow<E, half>::kMost)
        return launch(softmax_wide_rows<E, half>, kWideThreads);
    if (args.n <= WideRow<E, all>::kMost) launch(softmax_wide_rows<E, all>, kWideThreads);
    else launch(softmax_long_rows<E>, kLongThreads);
  });
}

void softmax_backward_long(const SoftmaxBackwardArgs& args, Stream& stream) {
  (void)with_floating(args.dtype, [&]<class E>() {
    using T = typename E::T;
    const T* y = static_cast<const T*>(args.y);
    const T* dy = static_cast<const T*>(args.dy);
    T* dx = static_cast<T*>(args.dx);
    const bool packs = rows_in_packs(args.n, y, dy, dx);
    const auto launch = [&](auto kernel, auto... more) {
      run("softmax_backward", kernel, blocks_for(args.rows, 1), kWideThreads, stream, y, dy, dx,
          args.rows, args.n, more..., args.log);
    };
    constexpr int all = kWidePacks / 2, half = all / 2;
    // rows of float so short do not come here
    if constexpr (sizeof(T) == 2)
      if (packs && args.n <= kMostOfTwo<T, half>)
        return launch(softmax_backward_wide_rows<E, half>);
    if (packs && args.n <= kMostOfTwo<T, all>) launch(softmax_backward_wide_rows<E, all>);
    else launch(softmax_backward_long_rows<E>, packs);
  });
}

}  // namespace braid::cuda
