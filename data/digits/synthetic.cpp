#include <braid/data/synthetic.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/internal/philox.hpp>
#include <braid/data/dataset.hpp>

#include "digits/font.hpp"
#include "draws.hpp"

namespace braid::data {
namespace {

constexpr int kSide = 28;
constexpr std::size_t kMostPoints = 16;
// the random stream of item 0, far from those of the random factories
constexpr std::uint64_t kDigitStream = std::uint64_t{0x646967697473} << 16;
// the first block of the noise; the draws of the shape use earlier blocks
constexpr std::uint64_t kNoiseBlock = 4096;

// How much the digits vary. Angles are given as tan(angle / 2), which needs no library function. So
// every machine draws the same bits.
constexpr float kTurn = 0.1f;                        // about 11 degrees
constexpr float kSlant = 0.2f;                       // horizontal shift per unit of height
constexpr float kBend = 0.035f;                      // fraction of the box, per point of the stroke
constexpr float kShift = 2.5f;                       // pixels
constexpr float kSmallest = 16.f, kLargest = 22.f;   // pixels, width and height each
constexpr float kThinnest = 0.7f, kThickest = 1.7f;  // pixels, half the width of the pen
constexpr float kPalest = 0.7f;
constexpr float kNoise = 0.1f;

struct Point {
  float x, y;
};

struct Stroke {
  std::array<Point, kMostPoints> points;
  std::size_t count;
};

/// Returns the digit's stroke in pixels, randomly deformed.
Stroke deformed(std::int64_t digit, Draws& draws) {
  const float t = draws.around(kTurn);
  const float cosine = (1 - t * t) / (1 + t * t), sine = 2 * t / (1 + t * t);
  const float slant = draws.around(kSlant);
  const float width = draws.between(kSmallest, kLargest),
              height = draws.between(kSmallest, kLargest);
  const float x0 = kSide * 0.5f + draws.around(kShift), y0 = kSide * 0.5f + draws.around(kShift);
  Stroke stroke{};
  for (const FontPoint& p : font_stroke(digit)) {
    const float y = (static_cast<float>(p.y) / 100 - 0.5f + draws.around(kBend)) * height;
    const float x =
        (static_cast<float>(p.x) / 100 - 0.5f + draws.around(kBend)) * width - slant * y;
    stroke.points[stroke.count++] = {x0 + cosine * x - sine * y, y0 + sine * x + cosine * y};
  }
  return stroke;
}

float distance(Point p, Point a, Point b) {
  const float dx = b.x - a.x, dy = b.y - a.y, px = p.x - a.x, py = p.y - a.y;
  const float square = dx * dx + dy * dy;
  const float along = square > 0 ? std::clamp((px * dx + py * dy) / square, 0.0f, 1.0f) : 0.0f;
  const float x = px - along * dx, y = py - along * dy;
  return std::sqrt(x * x + y * y);
}

/// Draws a line by adding ink to the pixels near it. A pixel keeps the largest value that it got.
void draw_line(float* image, Point a, Point b, float radius) {
  const float reach = radius + 1;
  const auto pixel = [](float v) { return std::clamp(static_cast<int>(v), 0, kSide - 1); };
  const int left = pixel(std::min(a.x, b.x) - reach), right = pixel(std::max(a.x, b.x) + reach);
  const int top = pixel(std::min(a.y, b.y) - reach), bottom = pixel(std::max(a.y, b.y) + reach);
  for (int y = top; y <= bottom; ++y) {
    for (int x = left; x <= right; ++x) {
      const float d = distance({static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f}, a, b);
      float& ink = image[y * kSide + x];
      ink = std::max(ink, std::clamp(radius + 0.5f - d, 0.0f, 1.0f));
    }
  }
}

void add_noise(float* image, float darkness, std::uint64_t seed, std::uint64_t stream) {
  // a Philox block has 16 bytes, and there are 49 × 16 pixels
  for (int i = 0; i < kSide * kSide; i += 16) {
    const PhiloxBlock block = philox(seed, stream, kNoiseBlock + static_cast<std::uint64_t>(i));
    for (int k = 0; k < 16; ++k) {
      const float uniform = static_cast<float>((block.w[k / 4] >> (8 * (k % 4))) & 0xffu) / 255;
      image[i + k] = std::clamp(image[i + k] * darkness + (uniform - 0.5f) * kNoise, 0.0f, 1.0f);
    }
  }
}

}  // namespace

SyntheticDigits::SyntheticDigits(std::int64_t size, std::uint64_t seed) : size_(size), seed_(seed) {
  if (size < 0) throw ArgumentError(str("SyntheticDigits: expected size >= 0, got ", size));
}

Labelled SyntheticDigits::get(std::int64_t index) const {
  check_index("SyntheticDigits", index, size_);
  const std::uint64_t stream = kDigitStream + static_cast<std::uint64_t>(index);
  Draws draws(seed_, stream);
  const std::int64_t digit = draws.below(10);
  const Stroke stroke = deformed(digit, draws);
  const float radius = draws.between(kThinnest, kThickest), darkness = draws.between(kPalest, 1.0f);

  Labelled item{make_tensor({1, kSide, kSide}, DType::float32, Device()),
                make_tensor({}, DType::int64, Device())};
  *item.label.data<std::int64_t>() = digit;
  auto* image = item.image.data<float>();
  std::fill(image, image + kSide * kSide, 0.0f);
  for (std::size_t i = 1; i < stroke.count; ++i)
    draw_line(image, stroke.points[i - 1], stroke.points[i], radius);
  add_noise(image, darkness, seed_, stream);
  return item;
}

}  // namespace braid::data
