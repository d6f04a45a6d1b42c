#include "formats/zip.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>

#include <braid/core/error.hpp>
#include <braid/core/io/checked.hpp>
#include <braid/core/io/json.hpp>

#if BRAID_WITH_ZLIB
#include <zlib.h>
#endif

namespace braid::data {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr std::uint64_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22;
constexpr std::uint64_t kBeyond = 0xffffffff;  // in a size: the size is in a zip64 field
constexpr std::size_t kMaxName = 1024;
constexpr std::uint16_t kUtf8 = 1 << 11, kDescriptor = 1 << 3, kStored = 0, kDeflated = 8;

/// N bytes of the file from `at` on, read as little-endian numbers.
template <std::size_t N> struct Block {
  std::array<unsigned char, N> bytes{};
  Block(const io::Source& file, std::uint64_t at) { file.read(bytes.data(), N, at); }
  [[nodiscard]] std::uint32_t u32(std::size_t at) const {
    return u16(at) | static_cast<std::uint32_t>(u16(at + 2)) << 16;
  }
  [[nodiscard]] std::uint16_t u16(std::size_t at) const {
    return static_cast<std::uint16_t>(bytes[at] | bytes[at + 1] << 8);
  }
};

void put16(std::string& out, std::uint64_t value) {
  out += static_cast<char>(value & 255);
  out += static_cast<char>(value >> 8 & 255);
}
void put32(std::string& out, std::uint64_t value) {
  put16(out, value & 0xffff);
  put16(out, value >> 16);
}

[[noreturn]] void fail(const io::Source& file, std::uint64_t at, const char* field,
                       std::string expected, std::string got) {
  throw FormatError(file.path(), static_cast<std::int64_t>(at), field, std::move(expected),
                    std::move(got));
}

bool is_good(const std::string& name) {
  return !name.empty() && io::is_utf8(name) && std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 32 || c == 127;
  });
}

/// Returns the offset of the member's data, according to its local header. Throws FormatError
/// unless that header is of the same member.
std::uint64_t data_begin(const io::Source& file, const ZipMember& m, std::uint64_t local,
                         std::uint64_t end) {
  if (!io::fits(local, kLocalBytes, end))
    fail(file, m.where, "local header", "within the file, before the directory",
         str("at byte ", local));
  const Block<kLocalBytes> block(file, local);
  if (block.u32(0) != kLocal) fail(file, local, "local header", "PK\\3\\4", "another signature");
  const std::uint64_t name_bytes = block.u16(26),
                      begin = local + kLocalBytes + name_bytes + block.u16(28);
  if (name_bytes != m.name.size() || !io::fits(local + kLocalBytes, name_bytes, end))
    fail(file, local, "local header", "the name of the directory", "another one");
  std::string name(static_cast<std::size_t>(name_bytes), '\0');
  file.read(name.data(), name_bytes, local + kLocalBytes);
  if (name != m.name || (block.u16(8) == kDeflated) != m.deflated)
    fail(file, local, "local header", "name and method of the directory", "others");
  if (!io::fits(begin, m.stored, end))
    fail(file, m.where, "size",
         str("at most ", end - std::min(begin, end), " bytes, what comes before the directory"),
         std::to_string(m.stored));
  return begin;
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const io::Source& file) {
  if (file.size() < kEndBytes)
    fail(file, 0, "file", str("at least ", kEndBytes, " bytes"), std::to_string(file.size()));
  const std::uint64_t end_at = file.size() - kEndBytes;
  const Block<kEndBytes> end(file, end_at);
  if (end.u32(0) != kEnd || end.u16(20) != 0)
    fail(file, end_at, "end of the directory", "PK\\5\\6 and no comment, at the end of the file",
         "something else");
  const std::uint64_t count = end.u16(10), bytes = end.u32(12), begin = end.u32(16);
  if (begin == kBeyond || count == 0xffff)
    throw LimitError(file.path(), static_cast<std::int64_t>(end_at), "directory",
                     "at most 65,534 members in 4 GiB", "zip64");
  if (end.u16(4) != 0 || end.u16(6) != 0 || end.u16(8) != count)
    fail(file, end_at, "volumes", "one", "several");
  if (begin > end_at || bytes != end_at - begin)
    fail(file, end_at, "directory", "up to its end", str(bytes, " bytes from byte ", begin, " on"));

  std::vector<ZipMember> members;
  struct Range {
    std::uint64_t begin, end;
  };
  std::vector<Range> ranges;
  std::uint64_t at = begin;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!io::fits(at, kEntryBytes, end_at))
      fail(file, at, "directory", str(count, " members"), std::to_string(i));
    const Block<kEntryBytes> entry(file, at);
    if (entry.u32(0) != kEntry) fail(file, at, "directory", "PK\\1\\2", "another signature");
    ZipMember m;
    m.where = at;
    const std::uint16_t flags = entry.u16(8), method = entry.u16(10);
    if ((flags & ~(kUtf8 | kDescriptor)) != 0)
      fail(file, at + 8, "flags", "no encryption, no patches", std::to_string(flags));
    if (method != kStored && method != kDeflated)
      fail(file, at + 10, "method", "0 (stored) or 8 (deflated)", std::to_string(method));
    m.deflated = method == kDeflated;
    m.crc32 = entry.u32(16);
    m.stored = entry.u32(20);
    m.bytes = entry.u32(24);
    const std::uint64_t local = entry.u32(42);
    if (m.stored == kBeyond || m.bytes == kBeyond || local == kBeyond)
      throw LimitError(file.path(), static_cast<std::int64_t>(at), "member", "within 4 GiB",
                       "zip64");
    if (!m.deflated && m.stored != m.bytes)
      fail(file, at + 20, "size", str(m.bytes, ", as it is stored"), std::to_string(m.stored));
    const std::uint64_t name_bytes = entry.u16(28),
                        rest = std::uint64_t{entry.u16(30)} + entry.u16(32);
    if (name_bytes > kMaxName)
      throw LimitError(file.path(), static_cast<std::int64_t>(at), "name",
                       str("at most ", kMaxName, " bytes"), std::to_string(name_bytes));
    if (!io::fits(at + kEntryBytes, name_bytes + rest, end_at))
      fail(file, at, "directory", "an entry within it", "one that is longer");
    m.name.resize(static_cast<std::size_t>(name_bytes));
    file.read(m.name.data(), name_bytes, at + kEntryBytes);
    if (!is_good(m.name))
      fail(file, at + kEntryBytes, "name", "UTF-8 without control characters", io::quoted(m.name));
    m.begin = data_begin(file, m, local, begin);
    ranges.push_back({local, m.begin + m.stored});
    at += kEntryBytes + name_bytes + rest;
    members.push_back(std::move(m));
  }
  if (at != end_at)
    fail(file, at, "directory", str(count, " members and nothing more"),
         str(end_at - at, " more bytes"));
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end)
      fail(file, ranges[i].begin, "members", "one after another", "two that overlap");
  }
  return members;
}

#if BRAID_WITH_ZLIB

std::vector<std::byte> inflate_member(const io::Source& file, const ZipMember& member) {
  // one byte more, to detect data that is too long
  std::vector<std::byte> in(static_cast<std::size_t>(member.stored)),
      out(static_cast<std::size_t>(member.bytes) + 1);
  file.read(in.data(), member.stored, member.begin);
  z_stream stream{};
  // raw deflate, the largest window
  if (inflateInit2(&stream, -15) != Z_OK) throw std::bad_alloc();
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const bool whole =
      result == Z_STREAM_END && stream.avail_in == 0 && stream.total_out == member.bytes;
  inflateEnd(&stream);
  if (!whole)
    fail(file, member.begin, "member",
         str(member.bytes, " bytes of valid compressed data in ", member.stored), "something else");
  out.pop_back();
  return out;
}

#else

std::vector<std::byte> inflate_member(const io::Source& file, const ZipMember& member) {
  throw IoError(file.path(), "decompress", 0, static_cast<std::int64_t>(member.begin),
                "expected members that are not compressed, got deflate: this build of Braid has no "
                "zlib (BRAID_ZLIB=ON needs it)");
}

#endif

namespace {

/// Returns the fields that a local header and a directory entry share: version 2.0, UTF-8, stored,
/// 1980-01-01, checksum, sizes, length of the name.
std::string common(const ZipMember& m) {
  std::string out;
  put16(out, 20);
  put16(out, kUtf8);
  put16(out, kStored);
  put16(out, 0);
  put16(out, 33);
  put32(out, m.crc32);
  put32(out, m.stored);
  put32(out, m.bytes);
  put16(out, m.name.size());
  put16(out, 0);
  return out;
}

}  // namespace

std::string zip_local_header(const ZipMember& member) {
  std::string out;
  put32(out, kLocal);
  return out + common(member) + member.name;
}

std::string zip_directory(const std::vector<ZipMember>& members, std::uint64_t begin) {
  std::string out;
  for (const ZipMember& m : members) {
    put32(out, kEntry);
    put16(out, 20);
    out += common(m);
    out.append(10, '\0');  // no comment, first volume, no attributes
    put32(out, m.begin - kLocalBytes - m.name.size());
    out += m.name;
  }
  const std::size_t bytes = out.size();
  put32(out, kEnd);
  put32(out, 0);
  put16(out, members.size());
  put16(out, members.size());
  put32(out, bytes);
  put32(out, begin);
  put16(out, 0);
  return out;
}

}  // namespace braid::data
