#include <cerrno>
#include <cstring>
#include <fstream>

#include <braid/braid.hpp>

#include "data_variable.hpp"
#include "idx_files.hpp"
#include "nn/refused.hpp"
#include "support/temporary.hpp"
#include "support/tensors.hpp"

using namespace braid;
using namespace braid::test;

namespace {

#if BRAID_WITH_ZLIB
const std::string kGzip = "(each also with .gz)";
#else
const std::string kGzip = "(not .gz: this build of Braid has no zlib)";
#endif

/// n images: pixel k of image i is (i + k) % 256; label i % 10.
std::string images(std::uint32_t n) {
  std::string s = header(0x08, {n, 28, 28});
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t k = 0; k < 784; ++k) s += static_cast<char>((i + k) % 256);
  return s;
}
std::string labels(std::uint32_t n) {
  std::string s = header(0x08, {n});
  for (std::uint32_t i = 0; i < n; ++i) s += static_cast<char>(i % 10);
  return s;
}

/// Writes a file of images and a file of labels into the folder.
void put(const TemporaryFolder& folder, const std::string& images, const std::string& labels) {
  write_file(folder / "mnist-images-idx3-ubyte", images);
  write_file(folder / "mnist-labels-idx1-ubyte", labels);
}

bool same(const data::Labelled& a, const data::Labelled& b) {
  return same_bits(a.image, b.image).empty() && same_bits(a.label, b.label).empty();
}

}  // namespace

TEST_CASE("mnist: items are images from 0 to 1 and labels", "[data][mnist]") {
  const TemporaryFolder folder;
  put(folder, images(12), labels(12));
  const data::Mnist mnist(folder.path());
  REQUIRE(mnist.size() == 12);
  for (std::int64_t i = 0; i < 12; ++i) {
    const data::Labelled item = mnist.get(i);
    CHECK((item.image.shape() == Shape{1, 28, 28} && item.image.dtype() == DType::float32));
    CHECK((item.label.shape() == Shape{} && item.label.dtype() == DType::int64));
    CHECK(*item.label.data<std::int64_t>() == i % 10);
    for (int k = 0; k < 784; ++k)
      REQUIRE(item.image.data<float>()[k] == static_cast<float>((i + k) % 256) / 255.0f);
  }
  mnist.get(3).image.data<float>()[0] = 9;  // each get makes a new tensor
  CHECK(mnist.get(3).image.data<float>()[0] == 3 / 255.0f);
  CHECK_THROWS_TEXT(IndexError, "Mnist: expected an index in [0, 12), got 12", mnist.get(12));
  CHECK_THROWS_TEXT(IndexError, "got -1", mnist.get(-1));
  const std::int64_t wrong[] = {0, 12};
  CHECK_THROWS_TEXT(IndexError, "got 12", mnist.get_batch(wrong));

  const std::int64_t picked[] = {11, 0, 11};
  const data::Labelled batch = mnist.get_batch(picked);
  CHECK(same(batch,
             collate(std::vector<data::Labelled>{mnist.get(11), mnist.get(0), mnist.get(11)})));
  CHECK(mnist.get_batch({}).image.shape() == Shape{0, 1, 28, 28});
  auto [train, test] = data::split(mnist, 9);
  data::DataLoader loader(test, {.batch_size = 2});
  std::vector<Tensor> seen;
  for (auto& [image, label] : loader) {
    CHECK(image.shape() == Shape{label.size(0), 1, 28, 28});
    seen.push_back(label);
  }
  CHECK(cat(seen).to_vector<int>() == std::vector<int>{9, 0, 1});
}

TEST_CASE("mnist: the names that files have", "[data][mnist]") {
  const TemporaryFolder folder;
  write_file(folder / "t10k-images-idx3-ubyte", images(2));
  write_file(folder / "t10k-labels.idx1-ubyte", labels(2));
  CHECK(data::Mnist(folder.path() + "/").size() == 2);
  write_file(folder / "train-images.idx3-ubyte", images(3));
  CHECK(data::Mnist(folder.path()).size() == 2);  // not found without its labels
  write_file(folder / "train-labels-idx1-ubyte", labels(3));
  CHECK(data::Mnist(folder.path()).size() == 3);
  CHECK(data::Mnist(folder.path(), data::MnistPart::test).size() == 2);
  CHECK(data::Mnist(folder.path(), data::MnistPart::train).size() == 3);
  put(folder, images(4), labels(4));
  CHECK(data::Mnist(folder.path()).size() == 4);
  const DataVariable variable(folder.path().c_str());
  CHECK(data::Mnist().size() == 4);
}

TEST_CASE("mnist: missing files are named, and where they were looked for",
          "[data][mnist][errors]") {
  const TemporaryFolder folder;
  CHECK_THROWS_TEXT(
      IoError,
      "expected mnist-images-idx3-ubyte and mnist-labels-idx1-ubyte, or train-images-idx3-ubyte "
      "and train-labels-idx1-ubyte, or t10k-images-idx3-ubyte and "
      "t10k-labels-idx1-ubyte " +
          kGzip + ", got none of these; looked in " + folder.path(),
      data::Mnist(folder.path()));
  CHECK_THROWS_TEXT(IoError,
                    "expected train-images-idx3-ubyte and train-labels-idx1-ubyte " + kGzip,
                    data::Mnist(folder.path(), data::MnistPart::train));
  {
    const DataVariable variable((folder.path() + "/nowhere").c_str());
    CHECK_THROWS_TEXT(IoError, "looked in " + folder.path() + "/nowhere (from BRAID_DATA)",
                      data::Mnist());
  }
  const DataVariable variable(nullptr);
  CHECK_THROWS_TEXT(IoError, "looked in no folder: none was given and BRAID_DATA is not set",
                    data::Mnist());
}

TEST_CASE("mnist: only missing files are ENOENT, whatever the build can read",
          "[data][mnist][errors]") {
  const TemporaryFolder folder;
  const auto number = [&] {
    try {
      const data::Mnist mnist(folder.path());
    } catch (const IoError& e) {
      return e.error_number;
    }
    return -1;
  };
  CHECK(number() == ENOENT);
  write_file(folder / "mnist-images-idx3-ubyte.gz", "\x1f\x8b");
  write_file(folder / "mnist-labels-idx1-ubyte.gz", "\x1f\x8b");
#if BRAID_WITH_ZLIB
  CHECK(number() == 0);  // damaged
#else
  CHECK(number() == ENOENT);
#endif
  put(folder, images(2).substr(0, 700), labels(2));
  CHECK(number() == 0);  // truncated
}

TEST_CASE("mnist: files that are not digits", "[data][mnist][errors]") {
  const TemporaryFolder folder;
  const std::tuple<const char*, std::string, std::string> rows[] = {
      {"images: expected uint8 [n, 28, 28], got uint8 [2, 28, 27]",
       header(0x08, {2, 28, 27}) + std::string(1512, 'x'), labels(2)},
      {"images: expected uint8 [n, 28, 28], got uint8 [2]", labels(2), labels(2)},
      {"labels: expected uint8 [n], got int32 [1]", images(1), header(0x09, {1}) + "a"},
      {"labels-idx1-ubyte: labels: expected 2, one for each image of *, got 3", images(2),
       labels(3)},
      {"label: expected 0 to 9, got 10 (byte 9)", images(2), header(0x08, {2}) + "\x09\x0a"},
      {"data: expected 1568 bytes for [2, 28, 28], got 1567", images(2).substr(0, 16 + 1567),
       labels(2)},
  };
  for (const auto& [text, i, l] : rows) {
    put(folder, i, l);
    CHECK_THROWS_TEXT(FormatError, text, data::Mnist(folder.path()));
  }
}

TEST_CASE("mnist: the real digits", "[data][mnist]") {
  const char* folder = std::getenv("BRAID_DATA");
  if (folder == nullptr) {
    WARN("skipped: BRAID_DATA is not set");
    return;
  }
#if !BRAID_WITH_ZLIB
  if (std::ifstream(std::string(folder) + "/mnist-images-idx3-ubyte.gz")) {
    WARN("skipped: the digits are compressed, and this build has no zlib");
    return;
  }
#endif
  const data::Mnist mnist;
  REQUIRE(mnist.size() == 10'000);
  std::vector<std::int64_t> counts(10, 0);
  const data::Labelled batch = mnist.get_batch(arange(10'000).to_vector<std::int64_t>());
  for (const auto label : batch.label.to_vector<std::int64_t>())
    ++counts.at(static_cast<std::size_t>(label));
  // the counts of MNIST's test set, as published
  CHECK(counts == std::vector<std::int64_t>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
  CHECK(batch.image.mean().item<double>() == Approx(0.1325).margin(0.0005));
  CHECK(*mnist.get(0).label.data<std::int64_t>() == 7);
}

TEST_CASE("synthetic: items are a function of seed and index", "[data][synthetic]") {
  const data::SyntheticDigits a(100, 5), b(50, 5), c(100, 6);
  int differ = 0;
  for (std::int64_t i = 0; i < 50; ++i) {
    const data::Labelled item = a.get(i);
    CHECK((item.image.shape() == Shape{1, 28, 28} && item.image.dtype() == DType::float32));
    CHECK((item.label.shape() == Shape{} && item.label.dtype() == DType::int64));
    CHECK(same(item, a.get(i)));
    CHECK(same(item, b.get(i)));
    differ += same(item, c.get(i)) || same(item, a.get(i + 1)) ? 0 : 1;
    for (int k = 0; k < 784; ++k)
      REQUIRE((item.image.data<float>()[k] >= 0 && item.image.data<float>()[k] <= 1));
  }
  CHECK(differ == 50);
  CHECK_THROWS_TEXT(IndexError, "SyntheticDigits: expected an index in [0, 100), got 100",
                    a.get(100));
  CHECK_THROWS_TEXT(ArgumentError, "SyntheticDigits: expected size >= 0, got -1",
                    data::SyntheticDigits(-1));
  CHECK(data::SyntheticDigits(0).size() == 0);
}

TEST_CASE("synthetic: the drawing has not changed", "[data][synthetic]") {
  // FNV-1a over the first 20 images and labels of seed 0: the same on every machine.
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](const void* data, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3u;
  };
  const data::SyntheticDigits digits(20);
  for (std::int64_t i = 0; i < 20; ++i) {
    const data::Labelled item = digits.get(i);
    add(item.image.data<float>(), 784 * sizeof(float));
    add(item.label.data<std::int64_t>(), sizeof(std::int64_t));
  }
  CHECK(hash == 0x37596b05110b4cd9u);
}

TEST_CASE("synthetic: ten kinds, equally often, that can be told apart", "[data][synthetic]") {
  constexpr std::int64_t kTrain = 800, kTest = 200;
  const data::Labelled all =
      *data::DataLoader(data::SyntheticDigits(kTrain + kTest), {.batch_size = kTrain + kTest})
           .begin();
  const std::vector<float> pixels = all.image.to_vector<float>();
  const std::vector<int> labels = all.label.to_vector<int>();
  std::vector<int> counts(10, 0);
  for (const int label : labels) ++counts.at(static_cast<std::size_t>(label));
  for (const int n : counts) CHECK(std::abs(n - 100) < 50);  // standard deviation 9.5
  // Classifies each of the last 200 by its nearest neighbour among the first 800.
  int right = 0;
  for (std::size_t i = kTrain; i < labels.size(); ++i) {
    float best = 1e9f;
    std::size_t nearest = 0;
    for (std::size_t j = 0; j < kTrain; ++j) {
      float distance = 0;
      for (std::size_t k = 0; k < 784; ++k) {
        const float d = pixels[784 * i + k] - pixels[784 * j + k];
        distance += d * d;
      }
      if (distance < best) best = distance, nearest = j;
    }
    right += labels[i] == labels[nearest];
  }
  CHECK(right >= kTest * 9 / 10);
}

TEST_CASE("find_mnist: none where no folder is named and no file is there; all else is an error",
          "[data][mnist][errors]") {
  const TemporaryFolder folder;
  write_file(folder / "mnist-images-idx3-ubyte", images(12));
  {
    const DataVariable unset(nullptr);
    CHECK_FALSE(data::find_mnist().has_value());
  }
  const DataVariable variable(folder.path().c_str());
  CHECK_FALSE(data::find_mnist().has_value());  // labels are missing
  CHECK_THROWS_TEXT(IoError, "Mnist", data::find_mnist(folder.path()));
  write_file(folder / "mnist-labels-idx1-ubyte", labels(11));
  CHECK_THROWS_TEXT(FormatError, "", data::find_mnist());
  write_file(folder / "mnist-labels-idx1-ubyte", labels(12));
  CHECK(data::find_mnist().value().size() == 12);
  CHECK(data::find_mnist(folder.path()).value().size() == 12);
}
