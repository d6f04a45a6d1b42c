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

/// One tensor of a safetensors file, checked: its bytes are begin … end of the file, and are
/// exactly what shape and dtype need.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  // from the start of the data until they are checked, then from the start of the file
  std::uint64_t begin = 0, end = 0;
  std::uint64_t where = 0;  // byte of the entry in the file, for messages
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // as in the header
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Name of a dtype in the format: `F32`.
[[nodiscard]] std::string_view safetensors_name(DType dtype) noexcept;

/// True for a name that the format may hold here: valid UTF-8, no control characters.
[[nodiscard]] bool is_good_name(std::string_view name) noexcept;

/// Reads and checks all that is not tensor data. Takes at most four bytes of memory for each byte
/// of the header, whether the file is good or not.
[[nodiscard]] SafetensorsHeader read_safetensors_header(const Source& file,
                                                        std::uint64_t max_header);

}  // namespace braid::io
