#include <braid/core/kernel_args/conv.hpp>

#include "conv_products.hpp"
#include "cpu/conv_library.hpp"
#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/runtime/scratch.hpp"
#include "cpu/simd/vec.hpp"

// Convolutions: oneDNN's where the library can compute the call, else Braid's own with unfolded
// columns and matrix products.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr std::int64_t kTileBytes = 64 * 1024;

/// Fills the columns of the grid positions [first, last), counted over all images.
template <class T>
void gather_columns(const Unfold& u, std::int64_t first_image, std::int64_t rows,
                    std::int64_t first, std::int64_t last, T* columns) {
  const std::int64_t own = u.channels / u.groups, depth = depth_of(u);
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t image = row / places_of(u), place = row % places_of(u),
                       at[2] = {place / u.grid[1], place % u.grid[1]};
    const T* const from = static_cast<const T*>(u.images) +
                          (first_image + image) * u.size[0] * u.size[1] * u.channels;
    T* to = columns + row * depth;
    for (std::int64_t i = 0; i < u.kernel[0]; ++i) {
      const std::int64_t y = at[0] * u.times[0] + i * u.step[0] + u.offset[0];
      const bool row_inside = y >= 0 && y % u.part[0] == 0 && y / u.part[0] < u.size[0];
      for (std::int64_t j = 0; j < u.kernel[1]; ++j, to += own) {
        const std::int64_t x = at[1] * u.times[1] + j * u.step[1] + u.offset[1];
        const bool inside = row_inside && x >= 0 && x % u.part[1] == 0 && x / u.part[1] < u.size[1];
        const T* const pixel =
            inside ? from + (y / u.part[0] * u.size[1] + x / u.part[1]) * u.channels : nullptr;
        for (std::int64_t g = 0; g < u.groups; ++g) {
          T* const part = to + g * rows * depth;
          if (inside)
            __builtin_memcpy(part, pixel + g * own, static_cast<std::size_t>(own) * sizeof(T));
          else __builtin_memset(part, 0, static_cast<std::size_t>(own) * sizeof(T));
        }
      }
    }
  }
}

struct Engine {
  static constexpr std::int64_t kColumns = 1024 * 1024;
  Stream& stream;

  template <class F> void with_memory(std::size_t bytes, F f) { f(outer_scratch(bytes)); }
  void unfold(const Unfold& u, std::int64_t first, std::int64_t images, void* columns) {
    const std::int64_t rows = images * places_of(u), row_bytes = u.groups * depth_of(u) * u.bytes;
    const std::int64_t group = row_bytes >= kTileBytes ? 1 : kTileBytes / row_bytes;
    const auto tile = [&](std::int64_t t) {
      const std::int64_t last = (t + 1) * group < rows ? (t + 1) * group : rows;
      if (u.bytes == 4)
        gather_columns(u, first, rows, t * group, last, static_cast<std::uint32_t*>(columns));
      else gather_columns(u, first, rows, t * group, last, static_cast<std::uint64_t*>(columns));
    };
    parallel_for(stream, (rows + group - 1) / group, tile);
  }
  void copy(const CopyArgs& args) { BRAID_ISA::copy(args, stream); }
  void gemm(const GemmArgs& args) { BRAID_ISA::gemm(args, stream); }
  void reduce(const ReduceArgs& args) { BRAID_ISA::reduce(args, stream); }
};

template <class Args> void convolve(const char* op, const Args& args, Stream& stream) {
  if (args.dtype != DType::float32 && args.dtype != DType::float64)
    fail_dtype(op, "float32 or float64", args.dtype);
  if (args.shape.n <= 0) return;
  if (library_conv(args, stream)) return;
  Engine engine{stream};
  conv_products(args, engine);
}

}  // namespace

void conv(const ConvArgs& args, Stream& stream) { convolve("conv", args, stream); }
void conv_backward_data(const ConvDataArgs& args, Stream& stream) {
  convolve("conv_backward_data", args, stream);
}
void conv_backward_weight(const ConvWeightArgs& args, Stream& stream) {
  convolve("conv_backward_weight", args, stream);
}

}  // namespace braid::cpu::BRAID_ISA
