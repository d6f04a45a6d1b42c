#include "formats/gzip.hpp"

#include <algorithm>
#include <limits>
#include <new>

#include <braid/core/error.hpp>

#if BRAID_WITH_ZLIB
#include <zlib.h>
#endif

namespace braid::data {

bool is_gzip(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

#if BRAID_WITH_ZLIB

struct GzipReader::State {
  explicit State(const io::Source& f) : file(f) {}

  z_stream stream{};
  const io::Source& file;
  std::uint64_t taken = 0;  // bytes of the file that were read into the buffer
  bool ended = false;
  unsigned char buffer[std::size_t{64} * 1024];

  [[nodiscard]] std::uint64_t rest() const { return file.size() - taken; }
  [[nodiscard]] std::int64_t offset() const {
    return static_cast<std::int64_t>(taken - stream.avail_in);
  }

  /// Calls inflate() once. The caller has set the output buffer.
  void step() {
    if (stream.avail_in == 0 && rest() != 0) {
      const std::uint64_t part = std::min<std::uint64_t>(rest(), sizeof buffer);
      file.read(buffer, part, taken);
      taken += part;
      stream.next_in = buffer;
      stream.avail_in = static_cast<uInt>(part);
    }
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END) ended = true;
    else if (result == Z_MEM_ERROR) throw std::bad_alloc();
    else if (result == Z_BUF_ERROR)
      throw FormatError(file.path(), offset(), "gzip", "more compressed data",
                        "the end of the file");
    else if (result != Z_OK)
      throw FormatError(file.path(), offset(), "gzip", "valid compressed data",
                        stream.msg != nullptr ? stream.msg : "damaged data");
  }
};

GzipReader::GzipReader(const io::Source& file) : state_(std::make_unique<State>(file)) {
  constexpr int kGzipOnly = 15 + 16;  // the largest window; requires a gzip header
  if (inflateInit2(&state_->stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
}

GzipReader::~GzipReader() { inflateEnd(&state_->stream); }

std::uint64_t GzipReader::read(void* to, std::uint64_t bytes) {
  State& s = *state_;
  auto* out = static_cast<Bytef*>(to);
  std::uint64_t done = 0;
  while (done < bytes && !s.ended) {
    const auto part =
        static_cast<uInt>(std::min<std::uint64_t>(bytes - done, std::numeric_limits<uInt>::max()));
    s.stream.next_out = out + done;
    s.stream.avail_out = part;
    s.step();
    done += part - s.stream.avail_out;
  }
  return done;
}

void GzipReader::expect_end() {
  State& s = *state_;
  if (!s.ended) {
    Bytef more = 0;  // room for one byte: zlib reads the trailer only if it has room for output
    s.stream.next_out = &more;
    s.stream.avail_out = 1;
    while (!s.ended && s.stream.avail_out == 1) s.step();
    if (s.stream.avail_out == 0)
      throw FormatError(s.file.path(), s.offset(), "gzip", "the end of the decompressed data",
                        "more of it");
  }
  if (s.stream.avail_in != 0 || s.rest() != 0)
    throw FormatError(s.file.path(), s.offset(), "gzip", "the end of the file after one member",
                      "more bytes");
}

#else

struct GzipReader::State {};
GzipReader::GzipReader(const io::Source& file) {
  throw IoError(file.path(), "decompress", 0, -1,
                "expected a file that is not compressed, got gzip: this build of Braid has no zlib "
                "(BRAID_ZLIB=ON needs it); decompress the file first");
}
GzipReader::~GzipReader() = default;
std::uint64_t GzipReader::read(void*, std::uint64_t) { return 0; }
void GzipReader::expect_end() {}

#endif

}  // namespace braid::data
