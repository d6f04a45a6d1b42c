#pragma once
#include <cstdint>
#include <span>

namespace braid::data {

/// A point of the font, in hundredths of the box that a digit is drawn in: x to the right, y down.
struct FontPoint {
  std::int8_t x, y;
};

/// Returns the stroke that draws a digit from 0 to 9: points that are connected in this order by
/// straight lines.
[[nodiscard]] std::span<const FontPoint> font_stroke(std::int64_t digit) noexcept;

}  // namespace braid::data
