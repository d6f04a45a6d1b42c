#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <braid/core/tensor.hpp>
#include <braid/data/labelled.hpp>

namespace braid::data {

/// The published part of the data set to look for.
enum class MnistPart : std::uint8_t { any, train, test };

/// Handwritten digits from a pair of IDX files (LeCun, Cortes, Burges): images 28 × 28, labels 0 to
/// 9.
///
/// Items  image [1, 28, 28] float32 from 0 (paper) to 1 (ink), label 0-dim int64; each get() makes
///        new tensors
/// Files  `<part>-images-idx3-ubyte` and `<part>-labels-idx1-ubyte`, also written `.idx3-ubyte`,
///        also with `.gz`. Parts: for `any` the first of mnist, train, t10k; for `train` only
///        train, for `test` only t10k
/// Throws IoError with error_number ENOENT if there are no such files; the message lists the
///        expected files and the folder (a build without zlib does not look for .gz); other
///        IoErrors; FormatError if they are not digits, or not as many labels as images
class Mnist {
 public:
  /// Reads the files in `folder` or, if that is empty, in the folder that the environment variable
  /// BRAID_DATA names.
  explicit Mnist(const std::string& folder = {}, MnistPart part = MnistPart::any);

  [[nodiscard]] std::int64_t size() const { return images_.size(0); }
  [[nodiscard]] Labelled get(std::int64_t index) const;
  [[nodiscard]] Labelled get_batch(std::span<const std::int64_t> indices) const;

 private:
  Tensor images_;  // uint8 [n, 28, 28]
  Tensor labels_;  // uint8 [n]
};

/// Returns Mnist(folder). Returns nothing if `folder` is empty and the folder in BRAID_DATA lacks
/// the files, so that a program can fall back to SyntheticDigits. Throws as Mnist does for files
/// that are damaged, or that are missing in a given folder.
[[nodiscard]] std::optional<Mnist> find_mnist(const std::string& folder = {});

}  // namespace braid::data
