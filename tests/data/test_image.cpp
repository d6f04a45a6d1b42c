#include <atomic>
#include <cmath>
#include <thread>

#include <braid/braid.hpp>

#include "nn/refused.hpp"
#include "support/temporary.hpp"
#include "support/tensors.hpp"
#include "support/tests_dir.hpp"

using namespace braid;
using namespace braid::test;

namespace {

/// Pixels that differ in every channel, row and column.
Tensor pattern(const Shape& shape) {
  return (arange(shape.numel(), {.dtype = DType::float32}).reshape(shape) * 37.0).to(DType::uint8);
}

Tensor read(const std::string& bytes, const data::ImageOptions& options = {}) {
  return data::read_image(as_bytes(bytes), options, "x.png");
}

/// The bytes of a PNG file of that many pixels.
std::string png(const Tensor& pixels) {
  const TemporaryFolder folder;
  data::write_png(folder / "x.png", pixels);
  return read_file(folder / "x.png");
}

}  // namespace

TEST_CASE("image: a PNG that is written and read has the same pixels", "[data][image]") {
  if (!data::can_read_images()) return;
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{3, 1, 1}, Shape{1, 7, 5}, Shape{3, 300, 301}}) {
    INFO(str(shape));
    const Tensor pixels = pattern(shape);
    const std::string bytes = png(pixels);
    CHECK(same_bits(read(bytes), pixels).empty());
    CHECK(read(bytes, {.channels = 3}).shape() == Shape{3, shape[1], shape[2]});
    CHECK(read(bytes, {.channels = 1}).shape() == Shape{1, shape[1], shape[2]});
  }
  const Tensor grey = pattern({4, 6});
  CHECK(same_bits(read(png(grey))[0], grey).empty());
  CHECK(same_bits(read(png(grey.t()))[0], grey.t().contiguous()).empty());  // a view
  const Tensor levels = tensor({{-1.0, 0.0, 0.5, 1.0, 2.0}});
  CHECK(read(png(levels)).to_vector<int>() == std::vector<int>{0, 0, 128, 255, 255});
}

TEST_CASE("image: JPEG and PNG files that other programs have written", "[data][image]") {
  if (!data::can_read_images()) return;
  const struct {
    const char* file;
    std::int64_t channels;
    double most;  // the largest difference; JPEG stores colours at half the resolution
  } cases[] = {{"colour.jpg", 3, 12}, {"progressive.jpg", 3, 12}, {"cmyk.jpg", 3, 3},
               {"grey.jpg", 1, 2},    {"alpha.png", 3, 0},        {"grey16.png", 1, 0},
               {"palette.png", 3, 0}};
  const Tensor x = arange(40) * 6;
  for (const auto& c : cases) {
    INFO(c.file);
    const Tensor image = data::read_image(tests_dir() + "/goldens/images/" + c.file);
    REQUIRE(image.shape() == Shape{c.channels, 24, 40});
    CHECK(max(abs(image[0].to(DType::int64) - x)).item<double>() <= c.most);
  }
}

TEST_CASE("image: what write_png refuses", "[data][image][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.png";
  refuses<ShapeError>("write_png: expected ")({
      {"[height, width], [1, height, width] or [3, height, width], got [2, 4, 4]",
       [&] { data::write_png(path, zeros({2, 4, 4})); }},
      {"*got [4]", [&] { data::write_png(path, zeros({4})); }},
      {"sizes of at least 1*got [0, 4]", [&] { data::write_png(path, zeros({0, 4})); }},
  });
  CHECK_THROWS_TEXT(DTypeError, "write_png: expected uint8 or a floating-point dtype, got int64",
                    data::write_png(path, arange(4).reshape({2, 2})));
  CHECK_THROWS_TEXT(ArgumentError, "write_png: expected numbers, got NaN",
                    data::write_png(path, full({2, 2}, NAN)));
  CHECK(folder.names().empty());
  CHECK_THROWS_TEXT(IoError, "nowhere", data::write_png(folder / "nowhere/x.png", zeros({2, 2})));
}

TEST_CASE("image: a grid of images", "[data][image]") {
  const Tensor images = full({3, 1, 2, 2}, 9.0);
  const Tensor grid = data::image_grid(images, 2);
  CHECK(grid.shape() == Shape{1, 5, 5});
  CHECK(grid[0].to_vector<int>() == std::vector<int>{9, 9, 0, 9, 9,  //
                                                     9, 9, 0, 9, 9,  //
                                                     0, 0, 0, 0, 0,  //
                                                     9, 9, 0, 0, 0,  //
                                                     9, 9, 0, 0, 0});
  CHECK(data::image_grid(images, 9).shape() == Shape{1, 2, 8});
  CHECK_THROWS_TEXT(ArgumentError, "image_grid: expected columns >= 1, got 0",
                    data::image_grid(images, 0));
  CHECK_THROWS_TEXT(ShapeError, "image_grid: expected [n, channels, height, width]*got [1, 2, 2]",
                    data::image_grid(images[0], 1));
  CHECK_THROWS_TEXT(ShapeError, "got [0, 1, 2, 2]", data::image_grid(images.narrow(0, 0, 0), 1));
}

TEST_CASE("image: files that are missing, damaged or too large are named",
          "[data][image][errors]") {
  const TemporaryFolder folder;
  CHECK_THROWS_TEXT(IoError, "none.png", data::read_image(folder / "none.png"));
  const std::string good = png(pattern({3, 40, 50}));
  if (!data::can_read_images()) {
    CHECK_THROWS_TEXT(IoError, "x.png*expected a build with stb*libstb-dev", read(good));
    return;
  }
  write_file(folder / "cut.png", good.substr(0, 60));
  CHECK_THROWS_TEXT(FormatError, "cut.png: image data: expected a complete and valid image, got *",
                    data::read_image(folder / "cut.png"));
  std::string bomb = good;  // 16 to 23 of the file: width and height
  bomb.replace(16, 8, std::string("\0\0\x40\0\0\0\x40\0", 8));
  refuses<LimitError>("x.png: ")({
      {"size: expected at most 67108864 pixels, got 16384 by 16384", [&] { (void)read(bomb); }},
      {"size: expected at most 1999 pixels, got 40 by 50",
       [&] { (void)read(good, {.max_pixels = 1999}); }},
      {"file: expected at most 99 bytes, got *", [&] { (void)read(good, {.max_bytes = 99}); }},
  });
  bomb.replace(16, 8, std::string("\0\0\x20\0\0\0\x20\0", 8));  // within the limit, without data
  refuses<FormatError>("x.png: image")({
      {": expected a PNG or JPEG file, got other bytes", [&] { (void)read(""); }},
      {": expected a PNG or JPEG file", [&] { (void)read("GIF89a" + good); }},
      {" header: expected a valid one, got *", [&] { (void)read(good.substr(0, 20)); }},
      {" data: expected a complete", [&] { (void)read(bomb); }},
  });
  refuses<ArgumentError>("read_image: expected ")({
      {"0, 1 or 3 channels, got 2", [&] { (void)read(good, {.channels = 2}); }},
      {"max_pixels >= 1, got 0", [&] { (void)read(good, {.max_pixels = 0}); }},
  });
  CHECK(read(good).shape() == Shape{3, 40, 50});  // after errors too
}

TEST_CASE("image: a file with more data than pixels allocates no more than the limit",
          "[data][image][errors]") {
  if (!data::can_read_images()) return;
  std::string file = png(zeros({4000, 4000}));  // 16 MB of zeros in some kB
  file.replace(16, 8, std::string("\0\0\0\x10\0\0\0\x10", 8));
  CHECK_THROWS_TEXT(LimitError,
                    "x.png: image data: expected at most 1064960 bytes of memory to read it, "
                    "got more",
                    read(file));
  CHECK(read(png(zeros({4, 4}))).shape() == Shape{1, 4, 4});  // the next image has its own limit
}

TEST_CASE("image: JPEG files that stb would read wrongly are refused", "[data][image][errors]") {
  if (!data::can_read_images()) return;
  // the counts of codes of 1 to 16 bits: 255 of them twice, and 1 of them more than fit
  const std::string tables =
      std::string("\xff\xc4\x02\x20\x00", 5) + "\xff\xff" + std::string(14, '\0');
  refuses<FormatError>("x.png: Huffman table: expected at most 256 codes, got 510")({
      {" (byte 6)", [&] { (void)read("\xff\xd8" + tables); }},
      {" (byte 7)", [&] { (void)read("\xff\xd8\xff" + tables); }},
      {" (byte 9)", [&] { (void)read("\xff\xd8\xff\xda\x12" + tables); }},
  });
  std::string bytes = read_file(tests_dir() + "/goldens/images/grey.jpg");
  // in a comment before the first scan they are no tables
  bytes.insert(2, std::string("\xff\xfe\x00\x18", 4) + tables.substr(0, 20) + "ab");
  CHECK(read(bytes).shape() == Shape{1, 24, 40});
  CHECK_THROWS_TEXT(FormatError, "x.png: length of a segment: expected at least 2, got 1",
                    read(std::string("\xff\xd8\xff\xdb\x00\x01", 6)));
  std::string scans = "\xff\xd8\xff\xda";
  for (int i = 0; i < 100; ++i) scans += "\xff\xda";
  CHECK_THROWS_TEXT(LimitError, "x.png: scans: expected at most 100, got more", read(scans));
}

TEST_CASE("image: threads read at the same time", "[data][image]") {
  if (!data::can_read_images()) return;
  const Tensor pixels = pattern({3, 64, 64});
  const std::string good = png(pixels), bad = good.substr(0, good.size() / 2);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k) {
        if (i % 2 == 0) right += same_bits(read(good), pixels).empty() ? 1 : 0;
        else right += thrown<FormatError>("x.png: image data", [&] { (void)read(bad); }).empty();
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(right == 80);
}
