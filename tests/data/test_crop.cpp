#include <algorithm>
#include <cmath>

#include <braid/braid.hpp>

#include "nn/refused.hpp"
#include "support/tensors.hpp"

using namespace braid;
using namespace braid::test;
using data::Box;

namespace {

/// Pixel values that grow by 6 from column to column: [1, 24, 40].
Tensor ramp() { return (arange(40) * 6).to(DType::uint8).expand({1, 24, 40}); }

}  // namespace

TEST_CASE("crop: the central box", "[data][crop]") {
  CHECK(data::central_box(24, 40, 1) == Box{0, 8, 24, 24});
  CHECK(data::central_box(40, 24, 0.5) == Box{14, 6, 12, 12});
  CHECK(data::central_box(256, 256) == Box{16, 16, 224, 224});
  CHECK(data::central_box(1, 9, 0.1) == Box{0, 4, 1, 1});
}

TEST_CASE("crop: random boxes have the areas and aspects of the options", "[data][crop]") {
  const data::RandomBoxOptions options{.least_area = 0.25, .most_area = 0.5};
  double sum = 0;
  std::int64_t lowest = 1000, highest = 0;
  for (std::uint64_t item = 0; item < 1000; ++item) {
    const Box b = data::random_box(300, 400, options, 7, item);
    REQUIRE((b.top >= 0 && b.left >= 0 && b.top + b.height <= 300 && b.left + b.width <= 400));
    const double area = static_cast<double>(b.height * b.width) / (300 * 400),
                 aspect = static_cast<double>(b.width) / static_cast<double>(b.height);
    REQUIRE((area > 0.24 && area < 0.51 && aspect > 0.73 && aspect < 1.36));
    REQUIRE(b == data::random_box(300, 400, options, 7, item));
    sum += area;
    lowest = std::min(lowest, b.left);
    highest = std::max(highest, b.left + b.width);
  }
  CHECK(std::abs(sum / 1000 - 0.375) < 0.02);
  CHECK((lowest < 5 && highest > 395));
  CHECK(data::random_box(300, 400, options, 7, 0) != data::random_box(300, 400, options, 8, 0));
  // no size fits: the central part with the closest aspect
  CHECK(data::random_box(10, 400, {.least_area = 0.9}, 1, 0) == Box{0, 193, 10, 13});
  CHECK(data::random_box(400, 10, {.least_area = 0.9}, 1, 0) == Box{193, 0, 13, 10});
  CHECK(data::random_box(1, 1, {}, 1, 0) == Box{0, 0, 1, 1});
}

TEST_CASE("crop: a crop is scaled as Pillow and torchvision do", "[data][crop]") {
  const Tensor pixels = ramp();
  // tests/goldens/make_images.py
  const std::vector<double> smaller{28.346939, 48.637169,  71.362831,  93.857140,
                                    116.14286, 138.637161, 161.362839, 181.653061},
      larger{18.0, 20.625, 24.375, 28.125, 31.875, 35.625, 39.375, 42.0};
  const auto differs = [](const Tensor& image, const std::vector<double>& expected) {
    return max(abs(image * 255 - tensor(expected).to(DType::float32))).item<double>();
  };
  CHECK(differs(data::resized_crop(pixels, {2, 3, 20, 30}, 8)[0], smaller) < 1e-4);
  CHECK(differs(data::resized_crop(pixels, {2, 3, 4, 5}, 8)[0], larger) < 1e-4);
  const Tensor upright = pixels.transpose(1, 2);  // rows instead of columns
  CHECK(differs(data::resized_crop(upright, {3, 2, 30, 20}, 8)[0].t(), smaller) < 1e-4);
  CHECK(differs(data::resized_crop(upright, {3, 2, 5, 4}, 8)[0].t(), larger) < 1e-4);

  const Tensor same = (arange(3 * 6 * 7) * 2).reshape({3, 6, 7}).to(DType::uint8);
  const Tensor part = data::resized_crop(same, {1, 2, 5, 5}, 5) * 255;
  const Tensor expected = same.narrow(1, 1, 5).narrow(2, 2, 5).to(DType::float32);
  CHECK(max(abs(part - expected)).item<double>() < 1e-4);
}

TEST_CASE("crop: what is refused", "[data][crop][errors]") {
  const Tensor pixels = ramp();
  refuses<ArgumentError>("")({
      {"central_box: expected a height and a width >= 1, got 0 and 4",
       [] { (void)data::central_box(0, 4); }},
      {"central_box: expected a fraction in (0, 1], got 1.5",
       [] { (void)data::central_box(4, 4, 1.5); }},
      {"random_box: expected 0 < least_area <= most_area <= 1, got 0 and 1",
       [] { (void)data::random_box(4, 4, {.least_area = 0}, 0, 0); }},
      {"random_box: expected 0 < least_aspect <= most_aspect, got 2 and 1",
       [] { (void)data::random_box(4, 4, {.least_aspect = 2, .most_aspect = 1}, 0, 0); }},
      {"resized_crop: expected a box in 24 by 40 pixels, got 20 by 30 at row 5 and column 3",
       [&] { (void)data::resized_crop(pixels, {5, 3, 20, 30}, 8); }},
      {"resized_crop: expected a box", [&] { (void)data::resized_crop(pixels, {0, -1, 2, 2}, 8); }},
      {"resized_crop: expected a box", [&] { (void)data::resized_crop(pixels, {0, 0, 0, 2}, 8); }},
      {"resized_crop: expected size >= 1, got 0",
       [&] { (void)data::resized_crop(pixels, {0, 0, 2, 2}, 0); }},
  });
  CHECK_THROWS_TEXT(ShapeError, "resized_crop: expected [channels, height, width], got [24, 40]",
                    data::resized_crop(pixels[0], {0, 0, 2, 2}, 1));
  CHECK_THROWS_TEXT(DTypeError, "resized_crop: expected uint8, got float32",
                    data::resized_crop(zeros({1, 2, 2}), {0, 0, 2, 2}, 1));
}
