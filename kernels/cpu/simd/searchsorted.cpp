#include <braid/core/internal/kernel_args/searchsorted.hpp>

#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/elements.hpp"

// A binary search for each value. 16-bit types are compared in float.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kTile = 4 * 1024;  // values

template <class E> BRAID_INLINE auto number_of(typename E::T x) {
  if constexpr (sizeof(x) == 2) return E::to_float(x);
  else return x;
}

template <class E>
BRAID_INLINE std::int64_t place_of(const typename E::T* row, std::int64_t n, typename E::T value,
                                   bool right) {
  const auto v = number_of<E>(value);
  std::int64_t begin = 0, end = n;
  while (begin < end) {
    const std::int64_t middle = begin + (end - begin) / 2;
    const auto x = number_of<E>(row[middle]);
    if (right ? x > v : x >= v) end = middle;
    else begin = middle + 1;
  }
  return begin;
}

template <class E> void search(const SearchsortedArgs& args, std::int64_t begin, std::int64_t end) {
  using T = typename E::T;
  for (std::int64_t i = begin; i < end; ++i)
    args.index[i] = place_of<E>(static_cast<const T*>(args.sequence) + i / args.m * args.step,
                                args.n, static_cast<const T*>(args.values)[i], args.right);
}

}  // namespace

void searchsorted(const SearchsortedArgs& args, Stream& stream) {
  const std::int64_t all = args.rows * args.m;
  if (all <= 0) return;
  if (args.dtype == DType::bool_) fail_dtype("searchsorted", "numbers", args.dtype);
  with_element(args.dtype, [&]<class E>() {
    const auto tile = [&](std::int64_t t) {
      search<E>(args, t * kTile, all < (t + 1) * kTile ? all : (t + 1) * kTile);
    };
    if (all <= kTile) tile(0);
    else parallel_for(stream, (all + kTile - 1) / kTile, tile);
    return true;
  });
}

}  // namespace braid::cpu::BRAID_ISA
