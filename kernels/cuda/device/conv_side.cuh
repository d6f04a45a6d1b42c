#pragma once
#include "conv_products.hpp"
#include "cuda/device/loop.cuh"
#include "cuda/device/mma_side.cuh"

// The columns of a convolution (conv_products.hpp) as an operand of mma_block. They are gathered
// from the images on their way to shared memory, and are never stored.
namespace braid::cuda {

/// An Unfold for the device. All positions fit in 31 bits.
struct Gather {
  Divider places, width;  // row r of the columns is a position (image, y, x) of the grid
  Divider own, across;    // column k is (kernel row i, kernel column j, channel c)
  Divider part[2];
  std::int64_t channels = 0;
  int times[2], step[2], offset[2], size[2];
};

/// A position of the grid: its image, and where the kernel's first element would be in it.
struct GridPlace {
  int image, y, x;
};
BRAID_DEVICE GridPlace place_of_row(const Gather& g, std::uint32_t row) {
  const auto image = g.places.divide_narrow(row),
             in_image = row - image * static_cast<std::uint32_t>(g.places.divisor),
             y = g.width.divide_narrow(in_image),
             x = in_image - y * static_cast<std::uint32_t>(g.width.divisor);
  return {static_cast<int>(image), static_cast<int>(y) * g.times[0] + g.offset[0],
          static_cast<int>(x) * g.times[1] + g.offset[1]};
}

/// A column: an element of the kernel and a channel.
struct KernelPlace {
  int i, j, c;
};
BRAID_DEVICE KernelPlace place_of_column(const Gather& g, std::uint32_t column) {
  const auto element = g.own.divide_narrow(column), i = g.across.divide_narrow(element);
  return {static_cast<int>(i),
          static_cast<int>(element - i * static_cast<std::uint32_t>(g.across.divisor)),
          static_cast<int>(column - element * static_cast<std::uint32_t>(g.own.divisor))};
}

/// The pixel that an element of the kernel reads, or -1 if it is outside of the image or, for the
/// gradient of a strided convolution, between two pixels.
BRAID_DEVICE int pixel_of(const Gather& g, const GridPlace& at, const KernelPlace& kernel) {
  const int y = at.y + kernel.i * g.step[0], x = at.x + kernel.j * g.step[1];
  if (y < 0 || x < 0) return -1;
  const auto down = static_cast<int>(g.part[0].divide_narrow(static_cast<std::uint32_t>(y))),
             right = static_cast<int>(g.part[1].divide_narrow(static_cast<std::uint32_t>(x)));
  const bool inside = down < g.size[0] && right < g.size[1] &&
                      down * static_cast<int>(g.part[0].divisor) == y &&
                      right * static_cast<int>(g.part[1].divisor) == x;
  return inside ? (at.image * g.size[0] + down) * g.size[1] + right : -1;
}

/// As MmaSide, for the columns: along_depth where k runs over an output's columns (their rows are
/// along the width), otherwise where k runs over their rows.
/// Aligned   the channels of a group are whole chunks, and aligned to 16 bytes.
template <class T, bool along_depth, int kWidth, int kDepth, int kBlock, bool Aligned>
class ConvSide : public MmaSide<T, along_depth, kWidth, kDepth, kBlock, Aligned> {
  using Tile = MmaSide<T, along_depth, kWidth, kDepth, kBlock, Aligned>;

 public:
  /// As MmaSide. `channels` is the first channel of the group.
  BRAID_DEVICE void start(const T* channels, const Gather& g, std::int64_t wide, std::int64_t deep,
                          std::int64_t width) {
    from_ = channels;
    this->start_width(wide, width);
    const int column = Tile::first_chunk() * Tile::kChunk;
    if constexpr (along_depth) {
#pragma unroll
      for (int e = 0; e < Tile::kEach; ++e) {
        const int line = Tile::first_line() + e * Tile::kLines;
        places_[e] =
            place_of_row(g, line < this->width_ ? static_cast<std::uint32_t>(wide + line) : 0);
      }
      at_ = static_cast<std::uint32_t>(deep) + static_cast<std::uint32_t>(column);
    } else {
      first_ = static_cast<std::uint32_t>(wide + column);
      kernel_ = place_of_column(g, first_);
      at_ = static_cast<std::uint32_t>(deep) + static_cast<std::uint32_t>(Tile::first_line());
    }
  }

  BRAID_DEVICE void load(T* tile, const Gather& g, bool /* packs */, int depth) {
    const int lines = this->lines_inside(depth), elements = this->elements_inside(depth);
    if constexpr (along_depth) first_ = at_, kernel_ = place_of_column(g, at_);
#pragma unroll
    for (int e = 0; e < Tile::kEach; ++e) {
      const int line = e * Tile::kLines, valid = line < lines ? elements : 0;
      T* const to = tile + Tile::place_of_chunk(e);
      GridPlace place{};
      if constexpr (along_depth) place = places_[e];
      else if (valid > 0) place = place_of_row(g, at_ + static_cast<std::uint32_t>(line));
      if constexpr (Aligned) {
        const int pixel = valid > 0 ? pixel_of(g, place, kernel_) : -1;
        simt::cp_async16(to, from_ + pixel * g.channels + kernel_.c,
                         pixel >= 0 ? 16 : 0);  // to shared: async
      } else {
        Pack<T, Tile::kChunk> pack;
#pragma unroll
        for (int i = 0; i < Tile::kChunk; ++i) {
          pack.v[i] = T(0.0f);
          if (i >= valid) continue;
          const KernelPlace kernel = place_of_column(g, first_ + static_cast<std::uint32_t>(i));
          const int pixel = pixel_of(g, place, kernel);
          if (pixel >= 0) pack.v[i] = from_[pixel * g.channels + kernel.c];
        }
        store_pack(to, pack);
      }
    }
    at_ += kDepth;
  }

 private:
  const T* from_;
  std::uint32_t at_;     // this thread's next column, or the row of its next line
  std::uint32_t first_;  // the first of this thread's chunk of columns, and its place
  KernelPlace kernel_;
  GridPlace places_[along_depth ? Tile::kEach : 1];
};

}  // namespace braid::cuda
