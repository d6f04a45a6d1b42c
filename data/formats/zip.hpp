#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <braid/core/io/file.hpp>

namespace braid::data {

/// A checked member of a zip file. Its data is [begin, begin + stored) of the file, and does not
/// overlap other members.
struct ZipMember {
  std::string name;
  bool deflated = false;
  std::uint32_t crc32 = 0;
  std::uint64_t begin = 0, stored = 0, bytes = 0;  // offset; size in the file; size decompressed
  std::uint64_t where = 0;                         // offset of its directory entry, for messages
};

/// Reads the directory of a zip file. Throws FormatError or LimitError for several volumes, zip64,
/// encryption or a comment at the end, which are not supported.
[[nodiscard]] std::vector<ZipMember> read_zip_directory(const io::Source& file);

/// Decompresses a deflated member. Throws FormatError; IoError in a build without zlib.
[[nodiscard]] std::vector<std::byte> inflate_member(const io::Source& file,
                                                    const ZipMember& member);

/// Parts of a zip file for writing: the local header that precedes each member, and the directory,
/// which begins at `begin` and ends the file.
[[nodiscard]] std::string zip_local_header(const ZipMember& member);
[[nodiscard]] std::string zip_directory(const std::vector<ZipMember>& members, std::uint64_t begin);

}  // namespace braid::data
