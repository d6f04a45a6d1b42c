#include <braid/data/image.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/core/internal/io/file.hpp>

#include "formats/jpeg.hpp"

#if BRAID_WITH_STB
namespace {

/// The bytes that stb may still allocate for the image that this thread reads. A damaged or hostile
/// file can make it ask for far more than the image needs.
thread_local std::size_t budget = 0;
thread_local bool over_budget = false;

void* allocate(std::size_t bytes) {
  over_budget = over_budget || bytes > budget;
  if (over_budget) return nullptr;
  budget -= bytes;
  return std::malloc(bytes);
}
void* allocate_again(void* block, std::size_t before, std::size_t bytes) {
  void* larger = allocate(bytes);
  if (larger == nullptr || block == nullptr) return larger;
  std::memcpy(larger, block, before < bytes ? before : bytes);
  std::free(block);
  return larger;
}

}  // namespace

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_FAILURE_USERMSG
#define STBI_ASSERT(x) static_cast<void>(x)
#define STBI_MALLOC(bytes) allocate(bytes)
#define STBI_REALLOC_SIZED(block, before, bytes) allocate_again(block, before, bytes)
#define STBI_FREE(block) std::free(block)
#include <stb/stb_image.h>
#endif

namespace braid::data {
namespace {

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int32_t>::max();  // stb's int

void check_options(const ImageOptions& o) {
  if (o.channels != 0 && o.channels != 1 && o.channels != 3)
    throw ArgumentError(str("read_image: expected 0, 1 or 3 channels, got ", o.channels));
  if (o.max_pixels < 1)
    throw ArgumentError(str("read_image: expected max_pixels >= 1, got ", o.max_pixels));
}

#if BRAID_WITH_STB

constexpr std::size_t kBytesPerPixel = 64, kFreeBytes = std::size_t{1} << 20;

/// Throws FormatError or LimitError for what stb would not refuse safely.
void check_format(const std::vector<unsigned char>& file, const std::string& name) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  if (bytes.starts_with("\xff\xd8\xff")) return check_jpeg(file, name);
  if (!bytes.starts_with("\x89PNG\r\n\x1a\n"))
    throw FormatError(name, 0, "image", "a PNG or JPEG file", "other bytes");
}

struct Free {
  void operator()(unsigned char* pixels) const noexcept { stbi_image_free(pixels); }
};

/// Throws the error of the call of stb that has failed.
[[noreturn]] void fail(const std::string& name, const char* part, const char* expected,
                       std::size_t most) {
  if (over_budget)
    throw LimitError(name, 0, part, str("at most ", most, " bytes of memory to read it"), "more");
  throw FormatError(name, 0, part, expected, stbi_failure_reason());
}

Tensor decode(const std::vector<unsigned char>& file, const ImageOptions& options,
              const std::string& name) {
  check_format(file, name);
  const int size = static_cast<int>(file.size());
  int width = 0, height = 0, in_file = 0;
  budget = kFreeBytes;
  over_budget = false;
  if (stbi_info_from_memory(file.data(), size, &width, &height, &in_file) == 0 || width < 1 ||
      height < 1)
    fail(name, "image header", "a valid one", kFreeBytes);
  if (width > options.max_pixels / height)
    throw LimitError(name, 0, "size", str("at most ", options.max_pixels, " pixels"),
                     str(height, " by ", width));
  const int channels = options.channels != 0 ? options.channels : in_file >= 3 ? 3 : 1;
  const std::size_t most = kFreeBytes + kBytesPerPixel * static_cast<std::size_t>(width) *
                                            static_cast<std::size_t>(height);
  budget = most;
  const std::unique_ptr<unsigned char, Free> pixels(
      stbi_load_from_memory(file.data(), size, &width, &height, &in_file, channels));
  if (pixels == nullptr) fail(name, "image data", "a complete and valid image", most);
  Tensor image = make_tensor({channels, height, width}, DType::uint8, Device());
  auto* to = image.data<std::uint8_t>();
  const std::int64_t plane = std::int64_t{height} * width;
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t i = 0; i < plane; ++i) *to++ = pixels.get()[i * channels + c];
  return image;
}

#else

Tensor decode(const std::vector<unsigned char>&, const ImageOptions&, const std::string& name) {
  throw IoError(name, "read_image", 0, -1,
                "expected a build with stb, got one without: install libstb-dev and configure "
                "with BRAID_STB=ON");
}

#endif

Tensor read(const io::Source& file, const ImageOptions& options) {
  check_options(options);
  const std::uint64_t most = std::min(options.max_bytes, kMostBytes);
  if (file.size() > most)
    throw LimitError(file.path(), 0, "file", str("at most ", most, " bytes"), str(file.size()));
  std::vector<unsigned char> bytes(static_cast<std::size_t>(file.size()));
  file.read(bytes.data(), bytes.size(), 0);
  return decode(bytes, options, file.path());
}

}  // namespace

bool can_read_images() noexcept {
#if BRAID_WITH_STB
  return true;
#else
  return false;
#endif
}

Tensor read_image(const std::string& path, const ImageOptions& options) {
  return read(io::InputFile(path), options);
}

Tensor read_image(std::span<const std::byte> bytes, const ImageOptions& options,
                  const std::string& name) {
  return read(io::MemorySource(bytes, name), options);
}

}  // namespace braid::data
