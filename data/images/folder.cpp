#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/internal/io/folder.hpp>
#include <braid/data/dataset.hpp>
#include <braid/data/image_folder.hpp>

#include "draws.hpp"
#include "files.hpp"

namespace braid::data {
namespace {

// the random stream that decides whether item 0 is mirrored
constexpr std::uint64_t kFlipStream = std::uint64_t{0x666c6970} << 20;

bool is_folder(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_image(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.ends_with(".png") || name.ends_with(".jpg") || name.ends_with(".jpeg");
}

void check_options(const ImageFolderOptions& o) {
  const auto refuse = [](const char* expected, const auto& got) {
    throw ArgumentError(str("ImageFolder: expected ", expected, ", got ", got));
  };
  if (o.size < 1) refuse("size >= 1", o.size);
  if (o.crops < 0) refuse("crops >= 0", o.crops);
  if (!(o.flip >= 0 && o.flip <= 1)) refuse("flip in [0, 1]", o.flip);
  if (o.image.channels != 1 && o.image.channels != 3)
    refuse("1 or 3 channels, the same for all images", o.image.channels);
  for (const double d : o.deviation)
    if (!(d > 0)) refuse("deviation > 0", d);
  (void)central_box(1, 1, o.centre);  // checks it
  (void)random_box(1, 1, o.box, 0, 0);
}

}  // namespace

struct ImageFolder::Files {
  struct File {
    std::string name;
    std::size_t label;
  };
  std::string folder;
  std::vector<std::string> classes;
  std::vector<File> files;
};

ImageFolder::ImageFolder(const std::string& folder, const ImageFolderOptions& options)
    : options_(options) {
  check_options(options);
  auto all = std::make_shared<Files>();
  all->folder = folder;
  for (const std::string& name : io::Folder(folder).names())
    if (is_folder(joined(folder, name))) all->classes.push_back(name);
  if (all->classes.empty())
    throw IoError(folder, "ImageFolder", 0, -1,
                  "expected a folder for each class, got no folder in it");
  for (std::size_t label = 0; label < all->classes.size(); ++label) {
    const std::string path = joined(folder, all->classes[label]);
    const std::size_t before = all->files.size();
    for (std::string& name : io::Folder(path).names())
      if (is_image(name)) all->files.push_back({std::move(name), label});
    if (all->files.size() == before)
      throw FormatError(path, 0, "class", "at least one .png, .jpg or .jpeg file", "none");
  }
  files_ = std::move(all);
  if (!can_read_images()) (void)read_image(path(0), options.image);  // says how to get stb
}

std::int64_t ImageFolder::images() const noexcept {
  return static_cast<std::int64_t>(files_->files.size());
}

std::int64_t ImageFolder::size() const noexcept {
  return images() * std::max<std::int64_t>(options_.crops, 1);
}

const std::vector<std::string>& ImageFolder::classes() const noexcept { return files_->classes; }

std::string ImageFolder::path(std::int64_t index) const {
  check_index("ImageFolder", index, size());
  const Files::File& file = files_->files[static_cast<std::size_t>(index % images())];
  return joined(joined(files_->folder, files_->classes[file.label]), file.name);
}

Labelled ImageFolder::get(std::int64_t index) const {
  const Tensor pixels = read_image(path(index), options_.image);
  const std::int64_t height = pixels.size(1), width = pixels.size(2), size = options_.size;
  const auto item = static_cast<std::uint64_t>(index);
  const bool random = options_.crops > 0;
  const Box box = random ? random_box(height, width, options_.box, options_.seed, item)
                         : central_box(height, width, options_.centre);
  const bool flip = random && Draws(options_.seed, kFlipStream + item).between(0, 1) <
                                  static_cast<float>(options_.flip);
  Labelled labelled{resized_crop(pixels, box, size), make_tensor({}, DType::int64, Device())};
  auto* value = labelled.image.data<float>();
  for (std::size_t c = 0; c < static_cast<std::size_t>(pixels.size(0)); ++c) {
    const auto mean = static_cast<float>(options_.mean[c]),
               factor = static_cast<float>(1 / options_.deviation[c]);
    for (std::int64_t y = 0; y < size; ++y, value += size) {
      if (flip) std::reverse(value, value + size);
      for (std::int64_t x = 0; x < size; ++x) value[x] = (value[x] - mean) * factor;
    }
  }
  *labelled.label.data<std::int64_t>() =
      static_cast<std::int64_t>(files_->files[static_cast<std::size_t>(index % images())].label);
  return labelled;
}

std::int64_t CropSampler::count(std::int64_t size) const {
  if (crops < 1 || size % crops != 0)
    throw ArgumentError(
        str("CropSampler: expected crops >= 1 that divide the size of ", size, ", got ", crops));
  return size / crops;
}

std::vector<std::int64_t> CropSampler::indices(std::int64_t size, std::int64_t epoch) const {
  const std::int64_t images = count(size);
  std::vector<std::int64_t> list = RandomSampler{seed}.indices(images, epoch);
  for (std::int64_t& i : list) i += epoch % crops * images;
  return list;
}

}  // namespace braid::data
