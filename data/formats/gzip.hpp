#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <braid/core/io/file.hpp>

namespace braid::data {

/// Whether this build has zlib.
#if BRAID_WITH_ZLIB
inline constexpr bool kReadsGzip = true;
#else
inline constexpr bool kReadsGzip = false;
#endif

/// True if the bytes begin as a gzip file does.
[[nodiscard]] bool is_gzip(std::span<const std::byte> bytes) noexcept;

/// Decompresses one gzip member, as much as is asked for and no more. Holds 64 KiB of the file at a
/// time, whatever its size.
class GzipReader {
 public:
  /// The source must outlive the reader. Throws IoError in a build without zlib, std::bad_alloc.
  explicit GzipReader(const io::Source& file);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Up to `bytes` decompressed bytes; fewer only at the member's end. Throws FormatError for
  /// damaged or truncated data, IoError.
  std::uint64_t read(void* to, std::uint64_t bytes);
  /// Throws FormatError unless the member ends here, its checksum and length are right, and nothing
  /// follows it.
  void expect_end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braid::data
