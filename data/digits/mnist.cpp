#include <braid/data/mnist.hpp>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/data/dataset.hpp>
#include <braid/data/idx.hpp>

#include "files.hpp"
#include "formats/gzip.hpp"

namespace braid::data {
namespace {

constexpr std::int64_t kSide = 28;
constexpr std::int64_t kPixels = kSide * kSide;

/// Returns the path of `<part>-<kind>` in the folder, in any of its spellings; empty if there is
/// none.
std::string find(const std::string& folder, std::string_view part, std::string_view kind,
                 std::string_view type) {
  for (const char* separator : {"-", "."}) {
    for (const char* suffix : {"", ".gz"}) {
      if (*suffix != '\0' && !kReadsGzip) continue;
      std::string path = joined(folder, str(part, "-", kind, separator, type, suffix));
      if (exists(path)) return path;
    }
  }
  return {};
}

struct Files {
  std::string images, labels;
};

Files find_files(const std::string& given, MnistPart part) {
  const std::string folder = data_folder(given);
  std::vector<std::string_view> names;
  if (part == MnistPart::any) names = {"mnist", "train", "t10k"};
  else names = {part == MnistPart::train ? "train" : "t10k"};
  if (!folder.empty()) {
    for (const std::string_view name : names) {
      Files files{find(folder, name, "images", "idx3-ubyte"),
                  find(folder, name, "labels", "idx1-ubyte")};
      if (!files.images.empty() && !files.labels.empty()) return files;
    }
  }
  std::string wanted;
  for (const std::string_view name : names)
    wanted += str(wanted.empty() ? "" : ", or ", name, "-images-idx3-ubyte and ", name,
                  "-labels-idx1-ubyte");
  constexpr const char* kGzip =
      kReadsGzip ? " (each also with .gz)" : " (not .gz: this build of Braid has no zlib)";
  throw IoError(
      folder, "Mnist", ENOENT, -1,
      str("expected ", wanted, kGzip, ", got none of these; looked ", data_folder_in_words(given)));
}

/// Converts pixels to floats: 0 (paper) becomes 0, and 255 (ink) becomes 1.
void to_floats(const std::uint8_t* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]) / 255.0f;
}

}  // namespace

Mnist::Mnist(const std::string& folder, MnistPart part) {
  const Files files = find_files(folder, part);
  Tensor images = read_idx(files.images), labels = read_idx(files.labels);
  if (images.dtype() != DType::uint8 || images.dim() != 3 || images.size(1) != kSide ||
      images.size(2) != kSide) {
    throw FormatError(files.images, 0, "images", "uint8 [n, 28, 28]",
                      str(images.dtype(), " ", images.shape()));
  }
  if (labels.dtype() != DType::uint8 || labels.dim() != 1)
    throw FormatError(files.labels, 0, "labels", "uint8 [n]",
                      str(labels.dtype(), " ", labels.shape()));
  if (labels.size(0) != images.size(0))
    throw FormatError(files.labels, 4, "labels",
                      str(images.size(0), ", one for each image of ", files.images),
                      std::to_string(labels.size(0)));
  const auto* first = labels.data<std::uint8_t>();
  const auto* wrong =
      std::find_if(first, first + labels.numel(), [](std::uint8_t label) { return label > 9; });
  if (wrong != first + labels.numel())
    throw FormatError(files.labels, 8 + (wrong - first), "label", "0 to 9", std::to_string(*wrong));
  images_ = std::move(images);
  labels_ = std::move(labels);
}

Labelled Mnist::get(std::int64_t index) const {
  check_index("Mnist", index, size());
  Labelled item{make_tensor({1, kSide, kSide}, DType::float32, Device()),
                make_tensor({}, DType::int64, Device())};
  to_floats(images_.data<std::uint8_t>() + index * kPixels, item.image.data<float>(), kPixels);
  *item.label.data<std::int64_t>() = labels_.data<std::uint8_t>()[index];
  return item;
}

Labelled Mnist::get_batch(std::span<const std::int64_t> indices) const {
  detail::check_indices("Mnist", indices, size());
  const auto n = static_cast<std::int64_t>(indices.size());
  Labelled batch{make_tensor({n, 1, kSide, kSide}, DType::float32, Device()),
                 make_tensor({n}, DType::int64, Device())};
  if (n == 0) return batch;
  const auto* images = images_.data<std::uint8_t>();
  const auto* labels = labels_.data<std::uint8_t>();
  auto* image = batch.image.data<float>();
  auto* label = batch.label.data<std::int64_t>();
  for (const std::int64_t i : indices) {
    to_floats(images + i * kPixels, image, kPixels);
    image += kPixels;
    *label++ = labels[i];
  }
  return batch;
}

std::optional<Mnist> find_mnist(const std::string& folder) {
  try {
    return Mnist(folder);
  } catch (const IoError& e) {
    if (!folder.empty() || e.error_number != ENOENT) throw;
    return std::nullopt;
  }
}

}  // namespace braid::data
