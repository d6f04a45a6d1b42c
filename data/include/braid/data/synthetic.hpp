#pragma once
#include <cstdint>

#include <braid/data/labelled.hpp>

namespace braid::data {

/// Digits drawn by a program, for machines without data: strokes of a small font, bent, turned,
/// slanted, scaled and moved at random, with a pen of random width, and noise. Item i is a function
/// of (seed, i) alone, the same on every machine.
///
/// Items  as Mnist's: image [1, 28, 28] float32 in [0, 1], label 0-dim int64, drawn at each get
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
