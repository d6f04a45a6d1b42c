#include <braid/data/crop.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <braid/core/error.hpp>

#include "draws.hpp"

namespace braid::data {
namespace {

// the random stream of item 0, far from those of the digits and of the random factories
constexpr std::uint64_t kBoxStream = std::uint64_t{0x626f786573} << 20;

void check_size(const char* call, std::int64_t height, std::int64_t width) {
  if (height < 1 || width < 1)
    throw ArgumentError(
        str(call, ": expected a height and a width >= 1, got ", height, " and ", width));
}

Box centred(std::int64_t height, std::int64_t width, std::int64_t h, std::int64_t w) {
  return {(height - h) / 2, (width - w) / 2, h, w};
}

/// The weights of one new pixel: those of the old pixels first, first + 1, …
struct Weights {
  std::int64_t first = 0;
  std::vector<float> weights;
};

/// Returns the weights by which `from` pixels become `to` pixels.
std::vector<Weights> triangles(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to),
               reach = std::max(scale, 1.0);
  std::vector<Weights> list(static_cast<std::size_t>(to));
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    Weights& w = list[static_cast<std::size_t>(i)];
    w.first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - reach));
    const std::int64_t end = std::min(from, static_cast<std::int64_t>(centre + reach) + 1);
    double sum = 0;
    for (std::int64_t k = w.first; k < end; ++k)
      sum += std::max(0.0, 1 - std::abs(static_cast<double>(k) + 0.5 - centre) / reach);
    for (std::int64_t k = w.first; k < end; ++k)
      w.weights.push_back(static_cast<float>(
          std::max(0.0, 1 - std::abs(static_cast<double>(k) + 0.5 - centre) / reach) / sum));
  }
  return list;
}

}  // namespace

Box central_box(std::int64_t height, std::int64_t width, double fraction) {
  check_size("central_box", height, width);
  if (!(fraction > 0 && fraction <= 1))
    throw ArgumentError(str("central_box: expected a fraction in (0, 1], got ", fraction));
  const auto side = std::max<std::int64_t>(
      1, std::llround(fraction * static_cast<double>(std::min(height, width))));
  return centred(height, width, side, side);
}

Box random_box(std::int64_t height, std::int64_t width, const RandomBoxOptions& o,
               std::uint64_t seed, std::uint64_t item) {
  check_size("random_box", height, width);
  if (!(o.least_area > 0 && o.least_area <= o.most_area && o.most_area <= 1))
    throw ArgumentError(str("random_box: expected 0 < least_area <= most_area <= 1, got ",
                            o.least_area, " and ", o.most_area));
  if (!(o.least_aspect > 0 && o.least_aspect <= o.most_aspect && std::isfinite(o.most_aspect)))
    throw ArgumentError(str("random_box: expected 0 < least_aspect <= most_aspect, got ",
                            o.least_aspect, " and ", o.most_aspect));
  Draws draws(seed, kBoxStream + item);
  const double area = static_cast<double>(height) * static_cast<double>(width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double part = area * static_cast<double>(draws.between(static_cast<float>(o.least_area),
                                                                 static_cast<float>(o.most_area))),
                 aspect = std::exp(static_cast<double>(
                     draws.between(static_cast<float>(std::log(o.least_aspect)),
                                   static_cast<float>(std::log(o.most_aspect)))));
    const std::int64_t w = std::llround(std::sqrt(part * aspect)),
                       h = std::llround(std::sqrt(part / aspect));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const std::int64_t top = draws.below(height - h + 1), left = draws.below(width - w + 1);
    return {top, left, h, w};
  }
  const double aspect = std::clamp(static_cast<double>(width) / static_cast<double>(height),
                                   o.least_aspect, o.most_aspect);
  const auto fit = [](double length, std::int64_t most) {
    return std::clamp<std::int64_t>(std::llround(length), 1, most);
  };
  return centred(height, width, fit(static_cast<double>(width) / aspect, height),
                 fit(static_cast<double>(height) * aspect, width));
}

Tensor resized_crop(const Tensor& pixels, const Box& box, std::int64_t size) {
  if (pixels.dim() != 3)
    throw ShapeError(str("resized_crop: expected [channels, height, width], got ", pixels.shape()));
  if (pixels.dtype() != DType::uint8)
    throw DTypeError(str("resized_crop: expected uint8, got ", pixels.dtype()));
  if (pixels.device().type() != DeviceType::cpu)
    throw DeviceError(str("resized_crop: expected host memory, got ", pixels.device()));
  const std::int64_t channels = pixels.size(0), height = pixels.size(1), width = pixels.size(2);
  if (box.height < 1 || box.width < 1 || box.top < 0 || box.left < 0 ||
      box.top > height - box.height || box.left > width - box.width)
    throw ArgumentError(str("resized_crop: expected a box in ", height, " by ", width,
                            " pixels, got ", box.height, " by ", box.width, " at row ", box.top,
                            " and column ", box.left));
  if (size < 1) throw ArgumentError(str("resized_crop: expected size >= 1, got ", size));
  const std::vector<Weights> columns = triangles(box.width, size),
                             rows = triangles(box.height, size);
  const Tensor whole = pixels.contiguous();
  Tensor image = make_tensor({channels, size, size}, DType::float32, Device());
  auto* to = image.data<float>();
  std::fill(to, to + image.numel(), 0.0f);
  std::vector<float> row(static_cast<std::size_t>(box.height * size));  // scaled in width
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto* from = whole.data<const std::uint8_t>() + (c * height + box.top) * width + box.left;
    float* scaled = row.data();
    for (std::int64_t y = 0; y < box.height; ++y, from += width) {
      for (const Weights& w : columns) {
        float sum = 0;
        const std::uint8_t* pixel = from + w.first;
        for (const float weight : w.weights) sum += weight * static_cast<float>(*pixel++);
        *scaled++ = sum / 255;
      }
    }
    for (const Weights& w : rows) {
      const float* line = row.data() + w.first * size;
      for (const float weight : w.weights) {
        for (std::int64_t x = 0; x < size; ++x) to[x] += weight * line[x];
        line += size;
      }
      to += size;
    }
  }
  return image;
}

}  // namespace braid::data
