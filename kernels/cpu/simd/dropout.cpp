#include <braid/core/kernel_args/dropout.hpp>

#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/dropout_factors.hpp"

// Dropout in one pass. The mask is never stored: forward and backward generate the same random
// words.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kTile = 16 * 1024;  // elements

/// Processes n elements whose indices in the whole tensor are e, e + 1, …
template <class E>
void drop_run(const typename E::T* x, typename E::T* y, std::int64_t n, std::uint64_t e,
              const DropFactors<Lane<typename E::V>>& make) {
  using V = typename E::V;
  using A = Lane<V>;
  alignas(64) A factor[kFactors];
  for (std::int64_t from = 0; from < n; from += kFactors) {
    const std::int64_t count = n - from < kFactors ? n - from : kFactors;
    make(factor, e + static_cast<std::uint64_t>(from), count);
    std::int64_t i = 0;
    for (; i + E::kLanes <= count; i += E::kLanes)
      E::store(y + from + i, E::load(x + from + i) * load<V>(factor + i));
    if (const int k = static_cast<int>(count - i); k > 0)
      E::store_first(y + from + i, E::load_first(x + from + i, k) * load_first<V>(factor + i, k),
                     k);
  }
}

template <class E> void dropout_of(const DropoutArgs& args, Stream& stream) {
  using A = Lane<typename E::V>;
  const auto* x = static_cast<const typename E::T*>(args.x);
  auto* y = static_cast<typename E::T*>(args.y);
  const DropFactors<A> make{args.seed, args.stream, args.threshold, static_cast<A>(args.scale)};
  const std::int64_t row = args.outer * args.inner, first = args.first_row * row;
  if (args.outer == 1) {
    const std::int64_t n = args.rows * args.inner;
    const auto tile = [&](std::int64_t t) {
      drop_run<E>(x + t * kTile, y + t * kTile, n - t * kTile < kTile ? n - t * kTile : kTile,
                  static_cast<std::uint64_t>(first + t * kTile), make);
    };
    if (n <= kTile) tile(0);
    else parallel_for(stream, (n + kTile - 1) / kTile, tile);
    return;
  }
  const auto slice = [&](std::int64_t o) {
    for (std::int64_t r = 0; r < args.rows; ++r) {
      const std::int64_t at = (o * args.rows + r) * args.inner;
      drop_run<E>(x + at, y + at, args.inner,
                  static_cast<std::uint64_t>(first + r * row + o * args.inner), make);
    }
  };
  parallel_for(stream, args.outer, slice);
}

}  // namespace

void dropout(const DropoutArgs& args, Stream& stream) {
  if (args.dtype < DType::float16) fail_dtype("dropout", "a floating-point dtype", args.dtype);
  if (args.outer <= 0 || args.rows <= 0 || args.inner <= 0) return;
  with_floating(args.dtype, [&]<class E>() {
    dropout_of<E>(args, stream);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
