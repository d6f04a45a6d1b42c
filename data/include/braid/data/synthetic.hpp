#pragma once
#include <cstdint>

#include <braid/data/labelled.hpp>

namespace braid::data {

/// Synthetic digits, for machines without data: strokes of a small font, randomly bent, rotated,
/// slanted, scaled and shifted, drawn with a pen of random width, with noise. Item i depends only
/// on (seed, i), and is the same on every machine.
///
/// Items  as in Mnist: image [1, 28, 28] float32 in [0, 1], label 0-dim int64; drawn by each get()
/// Throws ArgumentError for a negative size, IndexError from get
class SyntheticDigits {
 public:
  explicit SyntheticDigits(std::int64_t size, std::uint64_t seed = 0);

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] Labelled get(std::int64_t index) const;

 private:
  std::int64_t size_;
  std::uint64_t seed_;
};

}  // namespace braid::data
