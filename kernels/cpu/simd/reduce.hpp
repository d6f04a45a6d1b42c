#pragma once
#include <braid/core/kernel_args/reduce.hpp>

#include "cpu/simd/loaders.hpp"

// Shared by the files of `reduce`. All methods combine the elements in the order of tree.hpp, so
// that the bits do not depend on layouts, threads or the method.
namespace braid::cpu::BRAID_ISA {

void reduce_sum(const ReduceArgs& args, Stream& stream);
void reduce_extreme(const ReduceArgs& args, Stream& stream);  ///< max, min
void reduce_index(const ReduceArgs& args, Stream& stream);    ///< argmax, argmin

namespace {

/// True if the innermost kept dim is contiguous and the reduced elements are not: then vectors run
/// along the kept dim (reduce_columns.hpp).
BRAID_INLINE bool by_columns(const ReduceArgs& args) {
  if (args.keep.rank == 0) return false;
  const int inner = args.keep.rank - 1;
  return args.keep.stride[1][inner] == 1 && args.keep.size[inner] > 1 &&
         !is_contiguous(args.over, 1);
}

/// The type of the lanes in which E is reduced; `Integer` is that of integers and bool.
template <class E, class Integer>
using LaneOf =
    std::conditional_t<kThroughFloat<E>, float, std::conditional_t<kFloating<E>, double, Integer>>;

template <class Integer> Fetch find_fetch(DType dtype) {
  return with_element(dtype,
                      []<class E>() -> Fetch { return &fetch_elements<E, LaneOf<E, Integer>>; });
}

/// Calls f.template operator()<V>(make) with the vector type V that fits the arguments. make(x)
/// returns a source of the elements that are reduced from x. Integers are reduced in lanes of type
/// `Integer`.
template <class Integer, class F> BRAID_INLINE void with_source(const ReduceArgs& args, F&& f) {
  const bool dense = is_contiguous(args.over, 1);
  if (args.dtype == DType::float32 && dense)
    return f.template operator()<VF>(
        [](const char* x) { return DenseSource<F32>{reinterpret_cast<const float*>(x)}; });
  if (args.dtype == DType::float64 && dense)
    return f.template operator()<VD>(
        [](const char* x) { return DenseSource<F64>{reinterpret_cast<const double*>(x)}; });
  const Fetch fetch = find_fetch<Integer>(args.dtype);
  const Loop& over = args.over;
  if (args.dtype < DType::float16) {
    f.template operator()<Vec<Integer, kDoubleLanes>>(
        [&over, fetch](const char* x) { return FetchedSource<Integer>(x, over, fetch); });
  } else if (args.dtype == DType::float64) {
    f.template operator()<VD>(
        [&over, fetch](const char* x) { return FetchedSource<double>(x, over, fetch); });
  } else {
    f.template operator()<VF>(
        [&over, fetch](const char* x) { return FetchedSource<float>(x, over, fetch); });
  }
}

/// Calls write(value, out) for every kept element. `Integer` is the lane type of integers;
/// out_bytes is the size of an element of out.
template <class C, class Integer, class W>
void reduce_rows_of(const ReduceArgs& args, int out_bytes, Stream& stream, W write) {
  const std::int64_t n = args.over.n;
  const int bytes = element_bytes(args.dtype);
  const char* x = static_cast<const char*>(args.x);
  char* out = static_cast<char*>(args.out);
  with_source<Integer>(args, [&]<class V>(auto source_of) {
    if (n <= kSharedTile) {
      for_rows(args.keep.n, n, stream, [&](std::int64_t e) {
        auto source = source_of(x + offset_at(args.keep, 1, e) * bytes);
        write(reduce_all<C, V>(source, n), out + offset_at(args.keep, 0, e) * out_bytes);
      });
    } else {
      for (std::int64_t e = 0; e < args.keep.n; ++e) {
        const char* from = x + offset_at(args.keep, 1, e) * bytes;
        write(reduce_shared<C, V>(n, stream, [&] { return source_of(from); }),
              out + offset_at(args.keep, 0, e) * out_bytes);
      }
    }
  });
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
