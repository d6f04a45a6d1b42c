#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include <braid/braid.hpp>

#include "nn/refused.hpp"
#include "support/temporary.hpp"
#include "support/tensors.hpp"

using namespace braid;
using namespace braid::test;

namespace {

void make(const std::string& folder) { ::mkdir(folder.c_str(), 0755); }
Tensor filled(double value, std::int64_t height = 8, std::int64_t width = 12) {
  return full({1, height, width}, value);
}

/// Two classes: cat with a.PNG and b.png, dog with c.png; and files that are not images.
void fill(const TemporaryFolder& folder) {
  make(folder / "dog");
  make(folder / "cat");
  data::write_png(folder / "dog/c.png", filled(1));
  data::write_png(folder / "cat/b.png", filled(0.4));
  data::write_png(folder / "cat/a.PNG", filled(0.2, 20, 10));
  write_file(folder / "cat/notes.txt", "no image");
  write_file(folder / "README", "no class");
}

constexpr data::ImageFolderOptions kPlain{
    .size = 4, .mean = {0, 0, 0}, .deviation = {1, 1, 1}, .image = {.channels = 1}};

double value_of(const data::Labelled& item) { return item.image.max().item<double>(); }

}  // namespace

TEST_CASE("image folder: classes and files in the order of their names", "[data][image_folder]") {
  if (!data::can_read_images()) return;
  const TemporaryFolder folder;
  fill(folder);
  const data::ImageFolder images(folder.path(), kPlain);
  CHECK(images.classes() == std::vector<std::string>{"cat", "dog"});
  REQUIRE(images.size() == 3);
  CHECK(images.path(0) == folder / "cat/a.PNG");
  const double values[] = {0.2, 0.4, 1};
  for (std::int64_t i = 0; i < 3; ++i) {
    const data::Labelled item = images.get(i);
    CHECK((item.image.shape() == Shape{1, 4, 4} && item.image.dtype() == DType::float32));
    CHECK((item.label.shape() == Shape{} && item.label.item<int>() == (i == 2 ? 1 : 0)));
    CHECK(std::abs(value_of(item) - values[i]) < 1e-6);
  }
  CHECK_THROWS_TEXT(IndexError, "ImageFolder: expected an index in [0, 3), got 3", images.get(3));
  const data::ImageFolder colour(folder.path(), {.size = 5});  // normalised as for ImageNet
  const std::vector<float> white = colour.get(2).image.select(1, 0).select(1, 0).to_vector<float>();
  CHECK(std::abs(white[0] - (1 - 0.485) / 0.229) < 1e-5);
  CHECK(std::abs(white[2] - (1 - 0.406) / 0.225) < 1e-5);
}

TEST_CASE("image folder: crops differ, are mirrored, and can be repeated", "[data][image_folder]") {
  if (!data::can_read_images()) return;
  const TemporaryFolder folder;
  make(folder / "x");
  const Tensor ramp = linspace(0, 1, 40).expand({30, 40});
  for (const char* name : {"x/0.png", "x/1.png"}) data::write_png(folder / name, ramp);
  data::ImageFolderOptions options = kPlain;
  options.crops = 100;
  const data::ImageFolder images(folder.path(), options);
  CHECK((images.images() == 2 && images.size() == 200));
  std::int64_t mirrored = 0, repeated = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    const Tensor image = images.get(i).image;
    CHECK(same_bits(image, images.get(i).image).empty());
    mirrored += image[0][0][0].item<float>() > image[0][0][3].item<float>();
    repeated += same_bits(image, images.get((i + 1) % 200).image).empty();
  }
  CHECK((mirrored > 70 && mirrored < 130));
  CHECK(repeated == 0);
  options.flip = 0;
  const data::ImageFolder upright(folder.path(), options);
  for (std::int64_t i = 0; i < 200; ++i) {
    const Tensor image = upright.get(i).image;
    CHECK(image[0][0][0].item<float>() < image[0][0][3].item<float>());
  }
}

TEST_CASE("image folder: a crop of each image in each epoch", "[data][image_folder]") {
  const data::CropSampler sampler{3, 5};
  CHECK(sampler.count(12) == 4);
  std::vector<std::vector<std::int64_t>> epochs;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::int64_t> list = sampler.indices(12, epoch), sorted = list;
    std::sort(sorted.begin(), sorted.end());
    const std::int64_t first = epoch % 3 * 4;
    CHECK(sorted == std::vector<std::int64_t>{first, first + 1, first + 2, first + 3});
    for (std::int64_t& i : list) i %= 4;
    epochs.push_back(list);
  }
  CHECK((epochs[0] != epochs[1] || epochs[0] != epochs[2]));  // another order
  CHECK_THROWS_TEXT(ArgumentError,
                    "CropSampler: expected crops >= 1 that divide the size of 13, got 3",
                    sampler.indices(13, 0));
  CHECK_THROWS_TEXT(ArgumentError, "got 0", data::CropSampler{0}.count(13));
}

TEST_CASE("image folder: errors name the folder, the class or the file",
          "[data][image_folder][errors]") {
  const TemporaryFolder folder;
  const auto open = [&] { (void)data::ImageFolder(folder.path(), kPlain); };
  CHECK_THROWS_TEXT(IoError, "nowhere", data::ImageFolder(folder / "nowhere"));
  CHECK_THROWS_TEXT(IoError, folder.path() + "*expected a folder for each class, got no folder",
                    open());
  make(folder / "cat");
  make(folder / "dog");
  data::write_png(folder / "cat/a.png", filled(1));
  CHECK_THROWS_TEXT(FormatError, "dog: class: expected at least one .png, .jpg or .jpeg file, got",
                    open());
  write_file(folder / "dog/b.jpg", "no image");
  if (!data::can_read_images()) {
    CHECK_THROWS_TEXT(IoError, "cat/a.png*expected a build with stb", open());
    return;
  }
  const data::ImageFolder images(folder.path(), kPlain);
  CHECK_THROWS_TEXT(FormatError, "dog/b.jpg: image: expected a PNG or JPEG file, got other bytes",
                    images.get(1));
  data::DataLoader loader(images, {.batch_size = 2, .workers = 1});
  CHECK_THROWS_TEXT(WorkerError, "get(1) failed in batch 0*dog/b.jpg: image: expected",
                    loader.begin());

  const auto with = [&](auto change) {
    return [&folder, change] {
      data::ImageFolderOptions options = kPlain;
      change(options);
      (void)data::ImageFolder(folder.path(), options);
    };
  };
  refuses<ArgumentError>("")({
      {"ImageFolder: expected size >= 1, got 0", with([](auto& o) { o.size = 0; })},
      {"ImageFolder: expected crops >= 0, got -1", with([](auto& o) { o.crops = -1; })},
      {"ImageFolder: expected flip in [0, 1], got 2", with([](auto& o) { o.flip = 2; })},
      {"ImageFolder: expected 1 or 3 channels, the same for all images, got 0",
       with([](auto& o) { o.image.channels = 0; })},
      {"ImageFolder: expected deviation > 0, got 0", with([](auto& o) { o.deviation[1] = 0; })},
      {"central_box: expected a fraction", with([](auto& o) { o.centre = 0; })},
      {"random_box: expected 0 < least_area", with([](auto& o) { o.box.least_area = 2; })},
  });
}
