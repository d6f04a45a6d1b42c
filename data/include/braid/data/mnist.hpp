#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <braid/core/tensor.hpp>
#include <braid/data/labelled.hpp>

namespace braid::data {

/// Which of the published parts to look for.
enum class MnistPart : std::uint8_t { any, train, test };

/// Handwritten digits from a pair of IDX files (LeCun, Cortes, Burges): images 28 × 28, labels 0 to
/// 9.
///
/// Items  image [1, 28, 28] float32 from 0 (paper) to 1 (ink), label 0-dim int64; made new at each
///        get
/// Files  `<part>-images-idx3-ubyte` and `<part>-labels-idx1-ubyte`, also written `.idx3-ubyte`,
///        also with `.gz`. Parts: mnist, train, t10k in this order for any;
///        train alone, t10k alone for the others
/// Throws IoError with error_number ENOENT, if there are none, that says which files it wants and
/// where it looked (a build without zlib does not look for
///        .gz); IoError; FormatError if they are not digits, or not as many labels as images
class Mnist {
 public:
  /// Looks in `folder`, or, if that is empty, in the folder that the environment variable
  /// BRAID_DATA names.
  explicit Mnist(const std::string& folder = {}, MnistPart part = MnistPart::any);

  [[nodiscard]] std::int64_t size() const { return images_.size(0); }
  [[nodiscard]] Labelled get(std::int64_t index) const;
  [[nodiscard]] Labelled get_batch(std::span<const std::int64_t> indices) const;

 private:
  Tensor images_;  // uint8 [n, 28, 28]
  Tensor labels_;  // uint8 [n]
};

/// Mnist(folder); or none, if no folder is named and none of its files is where BRAID_DATA says,
/// for programs that go on with SyntheticDigits then. Throws as Mnist: files that are damaged, or
/// missing in a folder that is named, are an error.
[[nodiscard]] std::optional<Mnist> find_mnist(const std::string& folder = {});

}  // namespace braid::data
