#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <braid/core/dtype.hpp>
#include <braid/core/io/file.hpp>
#include <braid/core/shape.hpp>

namespace braid::io {

inline constexpr std::string_view kMetadataKey = "__metadata__";
inline constexpr std::size_t kMaxTensors = 100'000;
inline constexpr std::size_t kMaxNameBytes = 1024;
inline constexpr std::size_t kMaxMetadataBytes = 1024 * 1024;
inline constexpr std::uint64_t kDefaultMaxHeader = 16 * 1024 * 1024;

/// One checked tensor of a safetensors file. Its bytes are [begin, end) of the file, exactly as
/// many as shape and dtype need.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  // offsets from the start of the data while they are unchecked, then from the start of the file
  std::uint64_t begin = 0, end = 0;
  std::uint64_t where = 0;  // offset of the entry in the file, for messages
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Returns the format's name of a dtype, such as `F32`.
[[nodiscard]] std::string_view safetensors_name(DType dtype) noexcept;

/// Returns true if Braid accepts the tensor name: valid UTF-8 without control characters.
[[nodiscard]] bool is_good_name(std::string_view name) noexcept;

/// Reads and checks everything but the tensor data. Uses at most four bytes of memory per byte of
/// the header, for invalid files too.
[[nodiscard]] SafetensorsHeader read_safetensors_header(const Source& file,
                                                        std::uint64_t max_header);

}  // namespace braid::io
