#include <braid/data/idx.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/core/io/checked.hpp>
#include <braid/core/io/file.hpp>
#include <braid/core/memory.hpp>

#include "formats/gzip.hpp"

namespace braid::data {
namespace {

constexpr std::uint64_t kMagicBytes = 4;
constexpr std::uint64_t kSizeBytes = 4;  // per dimension
constexpr std::size_t kChunk = 64 * 1024;
// bytes of decompressed data per allocation; max_ratio always allows this much
constexpr std::size_t kPiece = 1024 * 1024;

struct Header {
  std::uint8_t type = 0;
  Shape shape;
  std::uint64_t bytes = 0;         // of the whole header
  std::uint64_t payload = 0;       // bytes of data
  std::uint64_t element_size = 0;  // as stored
};

[[noreturn]] void bad(const std::string& path, std::uint64_t at, const char* field,
                      std::string expected, std::string got) {
  throw FormatError(path, static_cast<std::int64_t>(at), field, std::move(expected),
                    std::move(got));
}

std::string hex(unsigned byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  return {'0', 'x', kDigits[(byte >> 4) & 15], kDigits[byte & 15]};
}

std::uint64_t size_of_type(std::uint8_t type) {
  switch (type) {
    case 0x08:
    case 0x09: return 1;
    case 0x0b: return 2;
    case 0x0c:
    case 0x0d: return 4;
    case 0x0e: return 8;
    default: return 0;
  }
}

/// Reads and checks the header. read(to, bytes, offset) must read exactly these bytes or throw.
template <class Read>
Header read_header(const std::string& path, const IdxOptions& options, const Read& read) {
  Header h;
  unsigned char magic[kMagicBytes];
  read(magic, kMagicBytes, std::uint64_t{0});
  if (magic[0] != 0 || magic[1] != 0)
    bad(path, 0, "magic", "0x00 0x00", hex(magic[0]) + " " + hex(magic[1]));
  h.type = magic[2];
  h.element_size = size_of_type(h.type);
  if (h.element_size == 0)
    bad(path, 2, "type", "one of 0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e", hex(magic[2]));
  if (magic[3] < 1 || magic[3] > kMaxRank)
    bad(path, 3, "number of dimensions", str("1 to ", kMaxRank), std::to_string(magic[3]));
  unsigned char sizes[kMaxRank * kSizeBytes];
  read(sizes, kSizeBytes * magic[3], kMagicBytes);
  for (int i = 0; i < magic[3]; ++i) {
    const unsigned char* b = sizes + static_cast<std::size_t>(i) * kSizeBytes;
    h.shape.push_back((std::int64_t{b[0]} << 24) | (std::int64_t{b[1]} << 16) |
                      (std::int64_t{b[2]} << 8) | std::int64_t{b[3]});
  }
  h.bytes = kMagicBytes + kSizeBytes * magic[3];
  std::uint64_t largest = 0;  // a bound for the tensor: its elements may be wider than stored ones
  if (!io::checked_bytes(h.shape.span(), h.element_size, h.payload) ||
      !io::checked_bytes(h.shape.span(), 8, largest)) {
    bad(path, kMagicBytes, "sizes", "at most 2^63 - 1 bytes", str(h.shape));
  }
  if (h.payload > options.max_bytes) {
    throw LimitError(path, static_cast<std::int64_t>(kMagicBytes), "sizes",
                     str("at most ", options.max_bytes, " bytes of numbers"),
                     str(h.payload, " for ", h.shape));
  }
  return h;
}

DType dtype_of_type(std::uint8_t type) {
  if (type == 0x08) return DType::uint8;
  if (type == 0x0d) return DType::float32;
  if (type == 0x0e) return DType::float64;
  return DType::int32;
}

template <class Stored, class T> void convert(const unsigned char* from, T* to, std::size_t n) {
  static_assert(std::endian::native == std::endian::little, "IDX numbers are big-endian");
  for (std::size_t i = 0; i < n; ++i) {
    unsigned char reversed[sizeof(Stored)] = {};
    std::reverse_copy(from + i * sizeof(Stored), from + (i + 1) * sizeof(Stored), reversed);
    Stored value;
    std::memcpy(&value, reversed, sizeof value);
    to[i] = static_cast<T>(value);
  }
}

/// Converts n stored elements to elements of the tensor, from index `at` on.
void convert(std::uint8_t type, const unsigned char* from, const Tensor& to, std::size_t at,
             std::size_t n) {
  void* data = to.impl()->data();
  switch (type) {
    case 0x08: std::memcpy(static_cast<std::uint8_t*>(data) + at, from, n); break;
    case 0x09: convert<std::int8_t>(from, static_cast<std::int32_t*>(data) + at, n); break;
    case 0x0b: convert<std::int16_t>(from, static_cast<std::int32_t*>(data) + at, n); break;
    case 0x0c: convert<std::int32_t>(from, static_cast<std::int32_t*>(data) + at, n); break;
    case 0x0d: convert<float>(from, static_cast<float*>(data) + at, n); break;
    default: convert<double>(from, static_cast<double*>(data) + at, n); break;
  }
}

Tensor read_plain(const io::Source& file, const IdxOptions& options) {
  const auto read = [&](void* to, std::uint64_t bytes, std::uint64_t offset) {
    if (!io::fits(offset, bytes, file.size()))
      bad(file.path(), offset, "header", str(bytes, " more bytes"),
          str(file.size() - std::min(offset, file.size())));
    file.read(to, bytes, offset);
  };
  const Header h = read_header(file.path(), options, read);
  const std::uint64_t rest = file.size() - h.bytes;
  if (h.payload != rest)
    bad(file.path(), h.bytes, "data", str(h.payload, " bytes for ", h.shape), str(rest));
  Tensor t = make_tensor(h.shape, dtype_of_type(h.type), Device());
  std::vector<unsigned char> chunk(
      static_cast<std::size_t>(std::min<std::uint64_t>(h.payload, kChunk)));
  for (std::uint64_t done = 0; done < h.payload;) {  // a chunk holds whole elements
    const std::uint64_t part = std::min<std::uint64_t>(h.payload - done, kChunk);
    file.read(chunk.data(), part, h.bytes + done);
    convert(h.type, chunk.data(), t, static_cast<std::size_t>(done / h.element_size),
            static_cast<std::size_t>(part / h.element_size));
    done += part;
  }
  return t;
}

Tensor read_compressed(const io::Source& file, const IdxOptions& options) {
  GzipReader gzip(file);
  const Header h =
      read_header(file.path(), options, [&](void* to, std::uint64_t count, std::uint64_t offset) {
        const std::uint64_t got = gzip.read(to, count);
        if (got != count)
          bad(file.path(), offset, "header", str(count, " more decompressed bytes"), str(got));
      });
  std::uint64_t most = 0;
  if (!io::checked_mul(file.size(), options.max_ratio, most))
    most = std::numeric_limits<std::uint64_t>::max();
  most = std::max<std::uint64_t>(most, kPiece);
  if (h.payload > most) {
    throw LimitError(file.path(), static_cast<std::int64_t>(kMagicBytes), "sizes",
                     str("at most ", most, " bytes of numbers from ", file.size(),
                         " compressed ones (max_ratio ", options.max_ratio, ")"),
                     str(h.payload, " for ", h.shape));
  }
  // Memory grows with the data in the file, not with the size in the header. The tensor is
  // allocated after the checksum was verified.
  std::vector<std::unique_ptr<unsigned char[]>> pieces;
  for (std::uint64_t done = 0; done < h.payload;) {
    const std::uint64_t part = std::min<std::uint64_t>(h.payload - done, kPiece);
    pieces.emplace_back(new unsigned char[static_cast<std::size_t>(part)]);
    const std::uint64_t got = gzip.read(pieces.back().get(), part);
    done += got;
    if (got != part)
      bad(file.path(), h.bytes + done, "data", str(h.payload, " decompressed bytes for ", h.shape),
          str(done));
  }
  gzip.expect_end();
  Tensor t = make_tensor(h.shape, dtype_of_type(h.type), Device());
  for (std::size_t i = 0; i < pieces.size(); ++i) {  // a piece holds whole elements
    const std::uint64_t done = i * std::uint64_t{kPiece},
                        part = std::min<std::uint64_t>(h.payload - done, kPiece);
    convert(h.type, pieces[i].get(), t, static_cast<std::size_t>(done / h.element_size),
            static_cast<std::size_t>(part / h.element_size));
    pieces[i].reset();
  }
  return t;
}

Tensor read(const io::Source& file, const IdxOptions& options) {
  try {
    std::byte first[2]{};
    if (file.size() >= sizeof first) file.read(first, sizeof first, 0);
    return is_gzip(first) ? read_compressed(file, options) : read_plain(file, options);
  } catch (const std::bad_alloc&) {
    // from the pieces or from zlib; the tensor's allocation throws OutOfMemoryError itself
    const MemoryStats now = memory_stats(Device());
    throw OutOfMemoryError(Device(), kPiece, now.in_use, now.cached, now.capacity,
                           "reading " + file.path());
  }
}

}  // namespace

Tensor read_idx(const std::string& path, const IdxOptions& options) {
  return read(io::InputFile(path), options);
}

Tensor read_idx(std::span<const std::byte> bytes, const IdxOptions& options,
                const std::string& name) {
  return read(io::MemorySource(bytes, name), options);
}

}  // namespace braid::data
