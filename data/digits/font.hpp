#pragma once
#include <cstdint>
#include <span>

namespace braid::data {

/// A point of the font: hundredths of the box that a digit is drawn in, x to the right, y down.
struct FontPoint {
  std::int8_t x, y;
};

/// The stroke that draws a digit, 0 to 9: points to be joined by straight lines, one after the
/// other.
[[nodiscard]] std::span<const FontPoint> font_stroke(std::int64_t digit) noexcept;

}  // namespace braid::data
