#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <braid/core/io/file.hpp>

namespace braid::data {

/// True if this build has zlib.
#if BRAID_WITH_ZLIB
inline constexpr bool kReadsGzip = true;
#else
inline constexpr bool kReadsGzip = false;
#endif

/// Returns true if the bytes begin like a gzip file.
[[nodiscard]] bool is_gzip(std::span<const std::byte> bytes) noexcept;

/// Decompresses one gzip member, only as far as it is read. Holds at most 64 KiB of the file in
/// memory.
class GzipReader {
 public:
  /// The source must outlive the reader. Throws IoError in a build without zlib, std::bad_alloc.
  explicit GzipReader(const io::Source& file);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Reads up to `bytes` decompressed bytes. Returns their number, which is smaller only at the end
  /// of the member. Throws FormatError for damaged or truncated data, IoError.
  std::uint64_t read(void* to, std::uint64_t bytes);
  /// Throws FormatError unless the member ends here, its checksum and length are correct, and
  /// nothing follows it.
  void expect_end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braid::data
