#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <braid/core/tensor.hpp>

// Image files. Pixels are tensors in host memory, [channels, height, width].
namespace braid::data {

/// The options of read_image. A file beyond a limit throws LimitError before its pixels are
/// decompressed.
struct ImageOptions {
  int channels = 0;  ///< 1: grey, 3: red, green and blue; 0: as in the file, without transparency
  std::int64_t max_pixels = std::int64_t{1} << 26;   ///< the largest height times width
  std::uint64_t max_bytes = std::uint64_t{1} << 28;  ///< the largest size of the file
};

/// Returns whether this build can read images: BRAID_STB found the headers of stb (libstb-dev).
[[nodiscard]] bool can_read_images() noexcept;

/// Reads a PNG or JPEG file. The first bytes decide which of the two it is, not the name.
///
/// Shapes    uint8 [channels, height, width]
/// Types     16 bits per channel are reduced to 8; transparency is dropped; palettes, CMYK and
///           YCCK become colours
/// Throws    ArgumentError for options out of range; IoError, also in a build without stb;
///           FormatError for another format or a damaged file, LimitError. Each names the file
/// Memory    at most 64 bytes for each pixel that the file claims, and 1 MiB
///
///     const Tensor cat = data::read_image("cat.jpg", {.channels = 3});
[[nodiscard]] Tensor read_image(const std::string& path, const ImageOptions& options = {});
/// The same from memory. `name` replaces the path in messages.
[[nodiscard]] Tensor read_image(std::span<const std::byte> bytes, const ImageOptions& options = {},
                                const std::string& name = "memory");

/// Writes a PNG file, which appears completely or not at all. Needs neither stb nor zlib; with zlib
/// the file is smaller.
///
/// Shapes    [height, width] or [1, height, width] (grey), or [3, height, width] (colours)
/// Types     uint8; or floating point from 0 (black) to 1 (white), clamped and rounded
/// Throws    ShapeError for other shapes and sizes of 0 or above 2^31 - 1, DTypeError, IoError;
///           ArgumentError for NaN
///
///     data::write_png("grey.png", linspace(0, 1, 256).reshape({16, 16}));
void write_png(const std::string& path, const Tensor& pixels);

/// Arranges images row by row in one picture, with a black line of one pixel between them. Missing
/// ones in the last row are black.
///
/// Shapes    [n, channels, height, width], n >= 1 → [channels, rows · (height + 1) - 1,
///           columns · (width + 1) - 1]
/// Throws    ShapeError; ArgumentError for columns < 1
///
///     data::write_png("batch.png", data::image_grid(rand({10, 1, 28, 28}), 5));
[[nodiscard]] Tensor image_grid(const Tensor& images, std::int64_t columns);

}  // namespace braid::data
