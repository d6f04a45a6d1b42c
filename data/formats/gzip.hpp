#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace braid::data {

/// True if the bytes begin as a gzip file does.
[[nodiscard]] bool is_gzip(std::span<const std::byte> bytes) noexcept;

/// Decompresses one gzip member from memory, as much as is asked for and no more.
class GzipReader {
 public:
  /// Throws Error in a build without zlib.
  GzipReader(std::span<const std::byte> bytes, std::string path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Up to `bytes` decompressed bytes; fewer only at the member's end. Throws FormatError for damaged or truncated data.
  std::uint64_t read(void* to, std::uint64_t bytes);
  /// Throws FormatError unless the member ends here, its checksum and length are right, and nothing follows it.
  void expect_end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braid::data
