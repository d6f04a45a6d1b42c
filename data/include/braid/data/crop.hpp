#pragma once
#include <cstdint>

#include <braid/core/tensor.hpp>

// Parts of images, as a dataset gives them to a network: always of one size.
namespace braid::data {

/// A part of an image, in pixels.
struct Box {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

/// Returns the square in the middle of an image of this size. Its side is `fraction` of the shorter
/// side of the image, at least one pixel.
///
/// Throws    ArgumentError for a size below 1, or a fraction outside (0, 1]
[[nodiscard]] Box central_box(std::int64_t height, std::int64_t width, double fraction = 0.875);

/// The options of random_box.
struct RandomBoxOptions {
  double least_area = 0.08, most_area = 1;               ///< fractions of the image's area
  double least_aspect = 3.0 / 4, most_aspect = 4.0 / 3;  ///< width / height, uniform as logarithm
};
/// Returns a random part of an image of this size. If ten random sizes in a row do not fit into the
/// image, it is the central part with the aspect closest to the allowed ones.
///
/// Random    determined by (seed, item)
/// Throws    ArgumentError for a size below 1, and unless 0 < least_area <= most_area <= 1 and 0 <
///           least_aspect <= most_aspect
/// Source    torchvision's RandomResizedCrop; Szegedy et al. 2015, arXiv:1409.4842
[[nodiscard]] Box random_box(std::int64_t height, std::int64_t width,
                             const RandomBoxOptions& options, std::uint64_t seed,
                             std::uint64_t item);

/// Scales a part of an image to size · size pixels. Each new pixel is a weighted mean of the pixels
/// of the box around its place; the weights fall linearly to 0 over one pixel of the larger of the
/// two grids. So a smaller image has no aliasing.
///
/// Shapes    pixels [channels, height, width] → [channels, size, size]
/// Types     uint8 → float32, from 0 to 1
/// Device    host memory
/// Throws    ShapeError, DTypeError, DeviceError; ArgumentError for size < 1, and unless the box
///           has at least one pixel and lies in the image
/// Source    torchvision's resized_crop with antialias, without rounding to 8 bits
///
///     const Tensor image = data::read_image("cat.jpg", {.channels = 3});
///     data::resized_crop(image, data::central_box(image.size(1), image.size(2)), 224);
[[nodiscard]] Tensor resized_crop(const Tensor& pixels, const Box& box, std::int64_t size);

}  // namespace braid::data
