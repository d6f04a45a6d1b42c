// write_digits FOLDER COUNT: writes synthetic digits in MNIST's file format, for programs that read
// only that format.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <braid/core/error.hpp>
#include <braid/data/synthetic.hpp>

#include "../../data/idx_files.hpp"

namespace {

/// Writes the whole file, or none.
void write(const std::filesystem::path& path, const std::string& bytes) {
  const std::filesystem::path part = path.string() + ".part";
  {
    std::ofstream out(part, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.exceptions(std::ios::failbit | std::ios::badbit);
    out.flush();
  }
  std::filesystem::rename(part, path);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 3 || std::atoll(arguments[2]) < 1)
      throw braid::ArgumentError("expected a folder and a count");
    const std::filesystem::path folder = arguments[1];
    const braid::data::SyntheticDigits digits(std::atoll(arguments[2]));
    const auto count32 = static_cast<std::uint32_t>(digits.size());
    std::string images = braid::test::header(8, {count32, 28, 28}),
                labels = braid::test::header(8, {count32});
    for (std::int64_t i = 0; i < digits.size(); ++i) {
      const braid::data::Labelled item = digits.get(i);
      const float* pixels = item.image.data<float>();
      std::transform(pixels, pixels + 784, std::back_inserter(images),
                     [](float ink) { return static_cast<char>(std::lround(255 * ink)); });
      labels += static_cast<char>(*item.label.data<std::int64_t>());
    }
    std::filesystem::create_directories(folder);
    write(folder / "mnist-images-idx3-ubyte", images);
    write(folder / "mnist-labels-idx1-ubyte", labels);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "write_digits: %s\n", e.what());
    return 1;
  }
}
