#include <braid/core/kernel_args/elementwise.hpp>

#include "cpu/simd/map.hpp"

// Copies between layouts and dtypes, and fills.
namespace braid::cpu::BRAID_ISA {
namespace {

template <class T> void same_kernel(void* out, const Inputs& in, std::int64_t n, const void*) {
  if (in.step[0] == 1) {
    __builtin_memmove(out, in.p[0], static_cast<std::size_t>(n) * sizeof(T));
    return;
  }
  constexpr int lanes = kVectorBytes / static_cast<int>(sizeof(T));
  using V = Vec<T, lanes>;
  T* to = static_cast<T*>(out);
  const V value = load<V>(in.p[0]);
  for (; n >= lanes; n -= lanes, to += lanes) store(to, value);
  if (n > 0) store_first(to, value, static_cast<int>(n));
}

// A float that the integer type cannot represent (or NaN) gives the result of the processor's
// conversion, as in PyTorch. This is not an error of the caller, so the sanitizer's check is off.
#ifdef __clang__
#define BRAID_ANY_FLOAT __attribute__((no_sanitize("float-cast-overflow")))
#else
#define BRAID_ANY_FLOAT  // g++ has this check only on request
#endif

/// Any nonzero value counts as true.
BRAID_INLINE std::uint8_t to_bool(bool x) { return x ? 1 : 0; }

/// Converts one element. float16 and bfloat16 convert through float; a floating-point number
/// becomes uint8 through int32, so conversion is defined for all values in the range of int32.
template <class To, class From>
BRAID_ANY_FLOAT BRAID_INLINE typename To::T convert(typename From::T x) {
  if constexpr (kThroughFloat<From> && From::kDType != DType::float32) {
    return convert<To, F32>(From::to_float(x));
  } else if constexpr (To::kDType == DType::bool_) {
    return to_bool(x != 0);
  } else if constexpr (kThroughFloat<To> && To::kDType != DType::float32) {
    return To::from_float(static_cast<float>(x));
  } else if constexpr (To::kDType == DType::uint8 && kFloating<From>) {
    return static_cast<std::uint8_t>(static_cast<std::int32_t>(x));
  } else {
    return static_cast<typename To::T>(x);
  }
}

template <class E> constexpr bool kSixteenBits = sizeof(typename E::T) == 2;

template <class To, class From>
void convert_kernel(void* out, const Inputs& in, std::int64_t n, const void* parameters) {
  using T = typename To::T;
  using S = typename From::T;
  T* to = static_cast<T*>(out);
  const S* x = static_cast<const S*>(in.p[0]);
  if (in.step[0] == 0) {
    alignas(64) T vector[64 / sizeof(T)];
    for (auto& lane : vector) lane = convert<To, From>(x[0]);
    Inputs one;
    one.p[0] = vector;
    one.step[0] = 0;
    return same_kernel<T>(out, one, n, parameters);
  }
  if constexpr (kSixteenBits<To> || kSixteenBits<From>) {
    // Converts through a small buffer of floats, so that both steps use vectors.
    constexpr std::int64_t block = 256;
    float wide[block];
    for (; n > 0; n -= block, to += block, x += block) {
      const std::int64_t k = n < block ? n : block;
      const float* from = wide;
      if constexpr (kSixteenBits<From>) {
        std::int64_t i = 0;
        for (; i + kFloatLanes <= k; i += kFloatLanes) store(wide + i, From::load(x + i));
        if (i < k)
          store_first(wide + i, From::load_first(x + i, static_cast<int>(k - i)),
                      static_cast<int>(k - i));
      } else if constexpr (From::kDType == DType::float32) {
        from = x;
      } else {
        for (std::int64_t i = 0; i < k; ++i) wide[i] = static_cast<float>(x[i]);
      }
      if constexpr (kSixteenBits<To>) {
        std::int64_t i = 0;
        for (; i + kFloatLanes <= k; i += kFloatLanes) To::store(to + i, load<VF>(from + i));
        if (i < k)
          To::store_first(to + i, load_first<VF>(from + i, static_cast<int>(k - i)),
                          static_cast<int>(k - i));
      } else {
        for (std::int64_t i = 0; i < k; ++i) to[i] = convert<To, F32>(from[i]);
      }
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = convert<To, From>(x[i]);
  }
}

MapKernel find_same_kernel(int bytes) {
  return bytes == 1   ? &same_kernel<std::uint8_t>
         : bytes == 2 ? &same_kernel<std::uint16_t>
         : bytes == 4 ? &same_kernel<std::uint32_t>
                      : &same_kernel<std::uint64_t>;
}

MapKernel find_convert_kernel(DType to, DType from) {
  return with_element(to, [&]<class To>() {
    return with_element(from, []<class From>() -> MapKernel { return &convert_kernel<To, From>; });
  });
}

// ---- Transposed copies: blocks of 16 x 16 go through a buffer, so that every cache line of both
// sides is touched once.
constexpr std::int64_t kBlock = 16;

template <class T>
void transpose_block(T* out, std::int64_t out_stride, const T* x, std::int64_t x_stride,
                     std::int64_t rows, std::int64_t columns) {
  // out[i * out_stride + j] = x[i + j * x_stride]
  T buffer[kBlock][kBlock];
  if (rows == kBlock && columns == kBlock) {
    for (int j = 0; j < kBlock; ++j)
      for (int i = 0; i < kBlock; ++i) buffer[i][j] = load<T>(x + i + j * x_stride);
    for (int i = 0; i < kBlock; ++i)
      __builtin_memcpy(out + i * out_stride, buffer[i], sizeof buffer[i]);
    return;
  }
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) buffer[i][j] = load<T>(x + i + j * x_stride);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) store(out + i * out_stride + j, buffer[i][j]);
}

/// Returns the dim along which x is contiguous while out is contiguous along the innermost, or -1.
int transposed_dim(const Loop& loop) {
  const int inner = loop.rank - 1;
  if (inner < 1 || loop.stride[0][inner] != 1 || loop.stride[1][inner] <= 1 || loop.size[inner] < 4)
    return -1;
  for (int d = 0; d < inner; ++d)
    if (loop.stride[1][d] == 1 && loop.size[d] >= 4) return d;
  return -1;
}

template <class T> void copy_transposed(const CopyArgs& args, int dim, Stream& stream) {
  const Loop& loop = args.loop;
  const int inner = loop.rank - 1;
  const std::int64_t rows = loop.size[dim], columns = loop.size[inner];
  const std::int64_t bands = (rows + kBlock - 1) / kBlock;
  // A loop over the other dims.
  Loop outer{};
  outer.n = 1;
  for (int d = 0; d < inner; ++d) {
    if (d == dim) continue;
    outer.size[outer.rank] = loop.size[d];
    for (int k = 0; k < 2; ++k) outer.stride[k][outer.rank] = loop.stride[k][d];
    ++outer.rank;
    outer.n *= loop.size[d];
  }
  const std::int64_t all = bands * outer.n, band_elements = kBlock * columns;
  const std::int64_t group = band_elements >= kTile ? 1 : kTile / band_elements;
  const auto tile = [&](std::int64_t t) {
    for (std::int64_t band = t * group; band < all && band < (t + 1) * group; ++band) {
      const Position at = position_of(outer, band / bands);
      const std::int64_t i = band % bands * kBlock, height = rows - i < kBlock ? rows - i : kBlock;
      T* out = static_cast<T*>(args.out) + offset_of(outer, 0, at) + i * loop.stride[0][dim];
      const T* x = static_cast<const T*>(args.x) + offset_of(outer, 1, at) + i;
      for (std::int64_t j = 0; j < columns; j += kBlock) {
        const std::int64_t width = columns - j < kBlock ? columns - j : kBlock;
        transpose_block(out + j, loop.stride[0][dim], x + j * loop.stride[1][inner],
                        loop.stride[1][inner], height, width);
      }
    }
  };
  if (loop.n <= kTile) {
    for (std::int64_t t = 0; t * group < all; ++t) tile(t);
  } else {
    parallel_for(stream, (all + group - 1) / group, tile);
  }
}

}  // namespace

void copy(const CopyArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  const int to_bytes = element_bytes(args.to), from_bytes = element_bytes(args.from);
  const bool same = args.to == args.from;
  if (same && !args.loop.dense) {
    const int dim = transposed_dim(args.loop);
    if (dim >= 0) {
      switch (to_bytes) {
        case 1: return copy_transposed<std::uint8_t>(args, dim, stream);
        case 2: return copy_transposed<std::uint16_t>(args, dim, stream);
        case 4: return copy_transposed<std::uint32_t>(args, dim, stream);
        default: return copy_transposed<std::uint64_t>(args, dim, stream);
      }
    }
  }
  run_map(Map{.kernel = same ? find_same_kernel(to_bytes) : find_convert_kernel(args.to, args.from),
              .parameters = nullptr,
              .loop = args.loop,
              .out = args.out,
              .out_bytes = to_bytes,
              .inputs = 1,
              .in = {args.x},
              .in_bytes = {from_bytes},
              .scalar = {}},
          stream);
}

void fill(const FillArgs& args, Stream& stream) {
  std::uint64_t value = 0;
  if (args.dtype == DType::int64) {
    store(&value, args.integer);
  } else {
    with_element(args.dtype, [&]<class E>() {
      store(&value, E::from_double(args.value));
      return true;
    });
  }
  const int bytes = element_bytes(args.dtype);
  run_map(Map{.kernel = find_same_kernel(bytes),
              .parameters = nullptr,
              .loop = args.loop,
              .out = args.out,
              .out_bytes = bytes,
              .inputs = 1,
              .in = {&value},
              .in_bytes = {bytes},
              .scalar = {true}},
          stream);
}

}  // namespace braid::cpu::BRAID_ISA
