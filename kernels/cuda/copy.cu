#include <braid/core/kernel_args/elementwise.hpp>

#include "cuda/device/map.cuh"
#include "cuda/kernels.hpp"

// Copies between layouts and dtypes of one device.
// Layouts  a transposing copy uses tiles of shared memory, so that accesses on both sides are
//          coalesced.
namespace braid::cuda {

/// A static_cast, except: to bool it is x != 0, and floating-point numbers become uint8 through
/// int32 (for negative numbers the result is unspecified). float16 and bfloat16 convert from float.
template <class To, class From> struct Convert {
  BRAID_DEVICE typename To::A operator()(typename From::A x) const {
    if constexpr (To::kDType == DType::bool_) return x != typename From::A{0} ? 1 : 0;
    else if constexpr (To::kDType == DType::uint8 && From::kFloating)
      return static_cast<std::uint8_t>(static_cast<std::int32_t>(x));
    else return static_cast<typename To::A>(x);
  }
};
struct Same {
  template <class A> BRAID_DEVICE A operator()(A x) const { return x; }
};

constexpr int kTile = 32, kTileRows = 8;

/// The iteration of copy_transposed: tiles of `rows` (along which x has stride 1) by `columns`
/// (along which out has stride 1), for each element of `outer`.
struct Turn {
  DeviceLoop<2> outer;
  std::int64_t rows, columns, row_tiles, column_tiles;
  std::int64_t out_stride, x_stride;  // of out along rows, of x along columns
};

template <class T>
__global__ void __launch_bounds__(kTile* kTileRows) copy_transposed(T* out, const T* x, Turn turn) {
  SIMT_SHARED(T, tile, [kTile][kTile + 1]);
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const std::int64_t tiles = turn.row_tiles * turn.column_tiles * turn.outer.n;
  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const std::int64_t flat = t / turn.column_tiles;
    const std::int64_t column = t % turn.column_tiles * kTile, row = flat % turn.row_tiles * kTile;
    const Offsets<2> at = offsets_of(turn.outer, flat / turn.row_tiles);
    for (int k = ty; k < kTile; k += kTileRows)
      if (row + tx < turn.rows && column + k < turn.columns)
        tile[k][tx] = x[at.at[1] + row + tx + (column + k) * turn.x_stride];
    __syncthreads();
    for (int k = ty; k < kTile; k += kTileRows)
      if (row + k < turn.rows && column + tx < turn.columns)
        out[at.at[0] + (row + k) * turn.out_stride + column + tx] = tile[tx][k];
    __syncthreads();  // the next tile is written over this one
  }
}

/// Returns the dim along which x is contiguous while out is contiguous along the innermost, or -1.
int transposed_dim(const Loop& loop) {
  const int inner = loop.rank - 1;
  if (inner < 1 || loop.stride[0][inner] != 1 || loop.stride[1][inner] == 1 ||
      loop.stride[1][inner] == 0 || loop.size[inner] < 8)
    return -1;
  for (int d = 0; d < inner; ++d)
    if (loop.stride[1][d] == 1 && loop.size[d] >= 8) return d;
  return -1;
}

template <class T> void transpose(const CopyArgs& args, int dim, Stream& stream) {
  const Loop& loop = args.loop;
  const int inner = loop.rank - 1;
  Loop outer{};
  outer.n = 1;
  for (int d = 0; d < inner; ++d) {
    if (d == dim) continue;
    outer.size[outer.rank] = loop.size[d];
    for (int k = 0; k < 2; ++k) outer.stride[k][outer.rank] = loop.stride[k][d];
    ++outer.rank;
    outer.n *= loop.size[d];
  }
  const std::int64_t rows = loop.size[dim], columns = loop.size[inner];
  const Turn turn{make_loop<2>(outer),
                  rows,
                  columns,
                  (rows + kTile - 1) / kTile,
                  (columns + kTile - 1) / kTile,
                  loop.stride[0][dim],
                  loop.stride[1][inner]};
  run("copy", copy_transposed<T>, blocks_for(turn.row_tiles * turn.column_tiles * outer.n, 1),
      dim3(kTile, kTileRows), stream, static_cast<T*>(args.out), static_cast<const T*>(args.x),
      turn);
}

/// An element that is copied without conversion.
template <class U> struct Bits {
  using T = U;
  using A = U;
  static BRAID_DEVICE A load(T x) { return x; }
  static BRAID_DEVICE T store(A x) { return x; }
};

template <class T> void copy_bits(const CopyArgs& args, Stream& stream) {
  const int dim = args.loop.dense ? -1 : transposed_dim(args.loop);
  if (dim >= 0) return transpose<T>(args, dim, stream);
  map("copy",
      Map1<Bits<T>, Bits<T>, Same>{static_cast<T*>(args.out), static_cast<const T*>(args.x), {}},
      args.loop, stream);
}

void copy(const CopyArgs& args, Stream& stream) {
  if (args.loop.n <= 0) return;
  if (args.to == args.from)
    return with_bits(size_of(args.to), [&]<class T>() { copy_bits<T>(args, stream); });
  with_element(args.to, [&]<class To>() {
    with_element(args.from, [&]<class From>() {
      if constexpr (To::kDType != From::kDType) {
        using F = Convert<To, From>;
        map("copy",
            Map1<To, From, F>{static_cast<typename To::T*>(args.out),
                              static_cast<const typename From::T*>(args.x), F{}},
            args.loop, stream);
      }
    });
  });
}

}  // namespace braid::cuda
