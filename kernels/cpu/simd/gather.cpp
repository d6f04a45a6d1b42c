#include <braid/core/kernel_args/index.hpp>

#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/elements.hpp"
#include "cpu/simd/walk.hpp"

// Gather and scatter of single elements by index along one dim. Whole rows are in rows.cpp.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kTileElements = 16 * 1024;

/// Calls f(offsets of the three operands, their strides, run length, index of the first element)
/// for each run along the innermost dim between the elements `begin` and `end`.
template <class F>
BRAID_INLINE void for_runs_of_three(const Loop& loop, std::int64_t begin, std::int64_t end, F f) {
  const int inner = loop.rank - 1;
  while (begin < end) {
    const Position at = position_of(loop, begin);
    const std::int64_t rest = inner < 0 ? 1 : loop.size[inner] - at.index[inner],
                       run = rest < end - begin ? rest : end - begin;
    std::int64_t offset[3], stride[3];
    for (int k = 0; k < 3; ++k) {
      offset[k] = offset_of(loop, k, at);
      stride[k] = inner < 0 ? 0 : loop.stride[k][inner];
    }
    f(offset, stride, run, begin);
    begin += run;
  }
}

/// Calls f for the runs of tiles of `group` elements of the loop.
template <class F>
BRAID_INLINE void for_tiles(const Loop& loop, std::int64_t group, Stream& stream, F f) {
  const auto tile = [&](std::int64_t t) {
    for_runs_of_three(loop, t * group, (t + 1) * group < loop.n ? (t + 1) * group : loop.n, f);
  };
  if (loop.n <= group) tile(0);
  else parallel_for(stream, (loop.n + group - 1) / group, tile);
}

BRAID_INLINE void check(const char* op, std::int64_t index, std::int64_t size,
                        std::int64_t position) {
  if (index < 0 || index >= size) fail_index(op, "indices", 0, size, index, position);
}

template <class T> void gather_as(const GatherArgs& args, Stream& stream) {
  for_tiles(
      args.loop, kTileElements, stream,
      [&](const std::int64_t* offset, const std::int64_t* stride, std::int64_t run, std::int64_t) {
        T* out = static_cast<T*>(args.out) + offset[0];
        const std::int64_t* index = args.index + offset[1];
        const T* x = static_cast<const T*>(args.x) + offset[2];
        for (std::int64_t i = 0; i < run; ++i)
          out[i * stride[0]] = x[i * stride[2] + index[i * stride[1]] * args.step];
      });
}

/// a + b in the dtype. Integers wrap around; bool is "or".
template <class E> BRAID_INLINE typename E::T added(typename E::T a, typename E::T b) {
  using T = typename E::T;
  if constexpr (kThroughFloat<E> && E::kDType != DType::float32)
    return E::from_float(E::to_float(a) + E::to_float(b));
  else if constexpr (kFloating<E>) return a + b;
  else if constexpr (E::kDType == DType::bool_) return static_cast<T>(a | b);
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                          static_cast<std::make_unsigned_t<T>>(b));
}

/// Calls put(to, from) for each element, in order along every line. Each thread processes whole
/// lines.
template <class T, class F> void scatter_as(const ScatterArgs& args, Stream& stream, F put) {
  const std::int64_t group = args.m >= kTileElements ? 1 : kTileElements / args.m;
  for_tiles(
      args.lines, group, stream,
      [&](const std::int64_t* offset, const std::int64_t* stride, std::int64_t run, std::int64_t) {
        for (std::int64_t j = 0; j < args.m; ++j) {
          T* out = static_cast<T*>(args.out) + offset[0];
          const std::int64_t* index = args.index + offset[1] + j * args.index_step;
          const T* src = static_cast<const T*>(args.src) + offset[2] + j * args.src_step;
          for (std::int64_t i = 0; i < run; ++i)
            put(out[i * stride[0] + index[i * stride[1]] * args.step], src[i * stride[2]]);
        }
      });
}

/// Calls f.template operator()<T>() with the unsigned type of `bytes` bytes.
template <class F> BRAID_INLINE void with_bits(int bytes, F f) {
  switch (bytes) {
    case 1: return f.template operator()<std::uint8_t>();
    case 2: return f.template operator()<std::uint16_t>();
    case 4: return f.template operator()<std::uint32_t>();
    default: return f.template operator()<std::uint64_t>();
  }
}

}  // namespace

void gather(const GatherArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  for_runs_of_three(args.loop, 0, args.loop.n,
                    [&](const std::int64_t* offset, const std::int64_t* stride, std::int64_t run,
                        std::int64_t first) {
                      for (std::int64_t i = 0; i < run; ++i)
                        check(args.op, args.index[offset[1] + i * stride[1]], args.size, first + i);
                    });
  with_bits(element_bytes(args.dtype), [&]<class T>() { gather_as<T>(args, stream); });
}

void scatter(const ScatterArgs& args, Stream& stream) {
  if (args.lines.n <= 0 || args.m <= 0) return;
  for_runs_of_three(args.lines, 0, args.lines.n,
                    [&](const std::int64_t* offset, const std::int64_t* stride, std::int64_t run,
                        std::int64_t first) {
                      for (std::int64_t i = 0; i < run; ++i)
                        for (std::int64_t j = 0; j < args.m; ++j)
                          check(args.op,
                                args.index[offset[1] + i * stride[1] + j * args.index_step],
                                args.size, (first + i) * args.m + j);
                    });
  if (args.add) {
    with_element(args.dtype, [&]<class E>() {
      using T = typename E::T;
      scatter_as<T>(args, stream, [](T& to, T from) { to = added<E>(to, from); });
      return true;
    });
  } else {
    with_bits(element_bytes(args.dtype),
              [&]<class T>() { scatter_as<T>(args, stream, [](T& to, T from) { to = from; }); });
  }
}

}  // namespace braid::cpu::BRAID_ISA
