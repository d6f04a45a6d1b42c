#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <braid/data/crop.hpp>
#include <braid/data/image.hpp>
#include <braid/data/labelled.hpp>

namespace braid::data {

/// The options of ImageFolder. The defaults are those with which ImageNet is usually evaluated;
/// with `.crops = epochs` they are those with which it is trained.
struct ImageFolderOptions {
  std::int64_t size = 224;  ///< the height and the width of the items
  /// the number of random crops of each image (see CropSampler); 0: one item, the central part
  std::int64_t crops = 0;
  RandomBoxOptions box = {};  ///< how a crop is chosen
  double flip = 0.5;          ///< the probability that a crop is mirrored
  double centre = 0.875;      ///< of the shorter side, without crops
  std::uint64_t seed = 0;     ///< of the crops
  /// subtracted from each channel, and what it is divided by then; grey images use the first
  std::array<double, 3> mean = {0.485, 0.456, 0.406}, deviation = {0.229, 0.224, 0.225};
  ImageOptions image = {.channels = 3};  ///< 1 or 3 channels, and the limits of a file
};

/// Images in a folder with a subfolder for each class, the layout of ImageNet: folder/class/*.png.
/// Classes are numbered in the order of their names. Files whose names do not end in .png, .jpg or
/// .jpeg (in any case) are not read.
///
/// Items     image [channels, size, size] float32, normalised; label 0-dim int64
/// Size      images, or crops · images: item v · images + i is crop v of image i. An item depends
///           only on its index, so an interrupted epoch can be repeated with the same bits
/// Throws    at construction: IoError for a folder that is missing, unreadable or has no subfolder,
///           and for a build without stb; FormatError for a class without images; ArgumentError for
///           options out of range. From get: IndexError, and what read_image throws, with the path
///
///     const std::int64_t epochs = 90;
///     const data::ImageFolder images("imagenet/train", {.crops = epochs});
///     data::DataLoader loader(images, {.batch_size = 256, .sampler = data::CropSampler{epochs}});
class ImageFolder {
 public:
  explicit ImageFolder(const std::string& folder, const ImageFolderOptions& options = {});

  [[nodiscard]] std::int64_t size() const noexcept;
  /// Reads the file each time.
  [[nodiscard]] Labelled get(std::int64_t index) const;

  /// The names of the classes, by label.
  [[nodiscard]] const std::vector<std::string>& classes() const noexcept;
  [[nodiscard]] std::int64_t images() const noexcept;  ///< the number of files
  /// The path of an item's file.
  [[nodiscard]] std::string path(std::int64_t index) const;

 private:
  struct Files;
  std::shared_ptr<const Files> files_;  // shared by copies
  ImageFolderOptions options_;
};

/// Visits one crop of each image of an ImageFolder: in epoch e, crop e % crops of all images, in
/// an order determined by (seed, epoch).
struct CropSampler {
  std::int64_t crops = 1;  ///< as in ImageFolderOptions
  std::uint64_t seed = 0;
  /// Throws ArgumentError unless crops >= 1 divides the size.
  [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t size, std::int64_t epoch) const;
  [[nodiscard]] std::int64_t count(std::int64_t size) const;
};

}  // namespace braid::data
