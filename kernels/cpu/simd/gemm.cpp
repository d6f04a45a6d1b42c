#include <braid/core/internal/kernel_args/gemm.hpp>

#include "cpu/simd/gemm.hpp"

#include "cpu/errors.hpp"
#include "cpu/gemm_library.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/vec.hpp"
#include "gemm_epilogue.hpp"
#include "gemm_sums.hpp"

namespace braid::cpu::BRAID_ISA {

namespace {

// In multiply-adds. A tile of kTileWork takes some microseconds; for less, waking a helper does not
// pay. A tile of kGridWork is large enough that packing and the library's start-up cost are small
// in comparison.
constexpr double kTileWork = 128 * 1024;
constexpr double kGridWork = 1024 * 1024;
constexpr double kSmallWork = 96.0 * 96 * 96;  // up to here Braid's loops need no packing
constexpr double kHugeWork = 1024.0 * 1024 * 1024;
// With 256-bit vectors, Braid's loops compute large products too. Measured on a Zen 3, one thread,
// oneDNN 2.6, 512 rows of 2048 columns: 75 GFLOP/s against oneDNN's 41 where B is not transposed
// and the length of its rows is a power of two, because oneDNN does not copy B there. Elsewhere the
// two are within 10 % of each other.
constexpr bool kLibraryPays = kVectorBytes != 32;
constexpr std::int64_t kFewRows = 4, kFewColumns = 16, kFewDots = 10, kLongDot = 64;

struct Grid {
  std::int64_t rows, columns;  // tiles in each direction
  std::int64_t row_step, column_step;
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The size of `parts` equal steps, rounded up to a multiple.
std::int64_t even_step(std::int64_t size, std::int64_t parts, std::int64_t multiple) {
  return ceil_div(ceil_div(size, parts), multiple) * multiple;
}

Grid make_grid(const GemmArgs& args, std::int64_t row_parts, std::int64_t column_parts,
               std::int64_t row_multiple, std::int64_t column_multiple) {
  const std::int64_t row_step = even_step(args.m, row_parts, row_multiple),
                     column_step = even_step(args.n, column_parts, column_multiple);
  return {ceil_div(args.m, row_step), ceil_div(args.n, column_step), row_step, column_step};
}

double work_of(const GemmArgs& args) {
  return static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k);
}

// Not size_of: its table would be a symbol that the instruction sets share.
bool has_16_bits(DType t) { return t == DType::float16 || t == DType::bfloat16; }

GemmWay choose_way(const GemmArgs& args) {
  if (has_16_bits(args.dtype)) return GemmWay::packed;
  if (args.dtype != DType::float32 && args.dtype != DType::float64) return GemmWay::direct;
  if (args.k == 0) return GemmWay::direct;
  const bool small = work_of(args) <= kSmallWork;
  // so few columns would leave vectors half empty
  if (!args.ta && args.n <= kFewDots && args.k >= kLongDot) return GemmWay::dot;
  if (args.tb) {
    if (!args.ta && args.m <= kFewRows) return GemmWay::dot;  // too few uses of B to transpose it
    if (small) return GemmWay::turned;
  } else if (small || args.m <= kFewRows || args.n <= kFewColumns) {
    return GemmWay::direct;
  }
  return kLibraryPays && args.dtype == DType::float32 && library_gemm_available() ? GemmWay::library
                                                                                  : GemmWay::packed;
}

// Small and skinny products: split along the longer side of C, into tiles that are each large
// enough for a thread.
Grid simple_grid(const GemmArgs& args, GemmWay way) {
  constexpr double kMostTiles = 64;
  const double wanted = work_of(args) / kTileWork;
  const auto parts = static_cast<std::int64_t>(wanted < kMostTiles ? wanted : kMostTiles);
  if (parts < 2) return {1, 1, args.m, args.n};
  // splitting the columns also splits the transposition of B; splitting the rows repeats it
  if (way == GemmWay::turned) {
    if (args.n >= 128) return make_grid(args, 1, parts, 1, 64);
    const std::int64_t most = args.m / 48;
    return most < 2 ? Grid{1, 1, args.m, args.n}
                    : make_grid(args, parts < most ? parts : most, 1, 12, 1);
  }
  return args.m >= args.n ? make_grid(args, parts, 1, 12, 1) : make_grid(args, 1, parts, 1, 64);
}

// Large products: tiles of about 256 × 512 (for the library 512 × 1024). Tiles are halved while
// there are few of them and they stay large enough.
Grid large_grid(const GemmArgs& args, GemmWay way) {
  constexpr std::int64_t kLeastRows = 64, kLeastColumns = 128;
  const std::int64_t scale = way == GemmWay::library ? 2 : 1;
  std::int64_t rows = ceil_div(args.m, 256 * scale), columns = ceil_div(args.n, 512 * scale);
  const double work = work_of(args);
  const std::int64_t enough = work > kHugeWork ? 8 : 4;
  while (rows * columns * args.batch < enough &&
         work / static_cast<double>(rows * columns) >= 2 * kGridWork) {
    const bool columns_can = args.n / (2 * columns) >= kLeastColumns,
               rows_can = args.m / (2 * rows) >= kLeastRows;
    if (columns_can && (!rows_can || args.n / columns >= args.m / rows)) {
      columns *= 2;
    } else if (rows_can) {
      rows *= 2;
    } else {
      break;
    }
  }
  return make_grid(args, rows, columns, 4, 16);
}

void (*tile_function(DType dtype))(const GemmArgs&, GemmWay, const GemmTile&) {
  switch (dtype) {
    case DType::float32: return &gemm_tile_float32;
    case DType::float64: return &gemm_tile_float64;
    case DType::float16: return &gemm_tile_float16;
    case DType::bfloat16: return &gemm_tile_bfloat16;
    case DType::int32: return &gemm_tile_int32;
    case DType::int64: return &gemm_tile_int64;
    default: fail_dtype("matmul", "float32, float64, float16, bfloat16, int32 or int64", dtype);
  }
}

template <class T> void relu_rows(const GemmArgs& args, const GemmTile& tile) {
  T* row = static_cast<T*>(args.c) + tile.matrix * args.batch_c + tile.i * args.ldc + tile.j;
  for (std::int64_t i = 0; i < tile.m; ++i, row += args.ldc)
    // a NaN fails the comparison and stays
    for (std::int64_t j = 0; j < tile.n; ++j) row[j] = row[j] <= T{} ? T{} : row[j];
}
// 16-bit types: the sign bit decides, except for a NaN, whose bits without the sign are greater
// than those of infinity.
void relu_rows_narrow(const GemmArgs& args, const GemmTile& tile, std::uint16_t infinity) {
  std::uint16_t* row =
      static_cast<std::uint16_t*>(args.c) + tile.matrix * args.batch_c + tile.i * args.ldc + tile.j;
  for (std::int64_t i = 0; i < tile.m; ++i, row += args.ldc)
    for (std::int64_t j = 0; j < tile.n; ++j) {
      const std::uint16_t bits = row[j];
      row[j] = bits >= 0x8000 && (bits & 0x7fff) <= infinity ? std::uint16_t{0} : bits;
    }
}

// Applies relu to a tile that was just written.
void activate(const GemmArgs& args, const GemmTile& tile) {
  if (args.epilogue != Epilogue::relu) return;
  switch (args.dtype) {
    case DType::float32: return relu_rows<float>(args, tile);
    case DType::float64: return relu_rows<double>(args, tile);
    case DType::float16: return relu_rows_narrow(args, tile, 0x7c00);
    case DType::bfloat16: return relu_rows_narrow(args, tile, 0x7f80);
    case DType::int32: return relu_rows<std::int32_t>(args, tile);
    default: return relu_rows<std::int64_t>(args, tile);
  }
}

// The kernels of an epilogue's pass.
struct Kernels {
  Stream& stream;
  void unary(const UnaryArgs& args) const { BRAID_ISA::unary(args, stream); }
  void binary(const BinaryArgs& args) const { BRAID_ISA::binary(args, stream); }
  void copy(const CopyArgs& args) const { BRAID_ISA::copy(args, stream); }
  void activation(const ActivationArgs& args) const { BRAID_ISA::activation(args, stream); }
};

}  // namespace

void gemm(const GemmArgs& args, Stream& stream) {
  const auto function = tile_function(args.dtype);
  if (args.m <= 0 || args.n <= 0 || args.batch <= 0) return;
  if (args.k == 0 && (args.a == nullptr || args.b == nullptr)) {
    // Operands without elements may be null, but the code below computes addresses in them. They
    // point into C instead, and nothing is read through them.
    GemmArgs empty = args;
    empty.a = empty.b = args.c;
    return gemm(empty, stream);
  }
  // only `add` has to see sums of 16-bit types before they are rounded
  const bool adds = args.epilogue == Epilogue::add && has_16_bits(args.dtype);
  if (args.epilogue > Epilogue::relu && !adds) {  // the others take a pass of their own
    gemm(without_epilogue(args), stream);
    return run_epilogue(args, Kernels{stream});
  }
  if (args.sum_a != nullptr) reduce(row_sums_of_a(args), stream);
  const GemmWay way = choose_way(args);
  const double work = work_of(args);
  if (args.batch == 1 && work < 2 * kTileWork) {
    function(args, way, {0, 0, 0, args.m, args.n});
    return activate(args, {0, 0, 0, args.m, args.n});
  }

  const Grid grid = way == GemmWay::library || way == GemmWay::packed ? large_grid(args, way)
                                                                      : simple_grid(args, way);
  const std::int64_t per_matrix = grid.rows * grid.columns;
  // matrices of a batch per job
  const std::int64_t together = per_matrix == 1 && work < kTileWork
                                    ? static_cast<std::int64_t>(kTileWork / (work < 1 ? 1 : work))
                                    : 1;
  const std::int64_t tiles = args.batch * per_matrix;
  auto run = [&](std::int64_t index) {
    const std::int64_t first = index * together;
    const std::int64_t last = first + together < tiles ? first + together : tiles;
    for (std::int64_t t = first; t < last; ++t) {
      const std::int64_t in_matrix = t % per_matrix;
      const std::int64_t i = in_matrix / grid.columns * grid.row_step,
                         j = in_matrix % grid.columns * grid.column_step;
      const std::int64_t m = args.m - i < grid.row_step ? args.m - i : grid.row_step,
                         n = args.n - j < grid.column_step ? args.n - j : grid.column_step;
      const GemmTile tile{t / per_matrix, i, j, m, n};
      function(args, way, tile);
      activate(args, tile);
    }
  };
  parallel_for(stream, ceil_div(tiles, together), run);
}

void gemm_pair(const GemmPairArgs& args, Stream& stream) {
  gemm(args.first, stream);
  gemm(args.second, stream);
}

}  // namespace braid::cpu::BRAID_ISA
