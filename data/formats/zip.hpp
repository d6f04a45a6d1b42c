#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <braid/core/io/file.hpp>

namespace braid::data {

/// A member of a zip file, checked: its bytes are begin … begin + stored of the file, and overlap
/// no other's.
struct ZipMember {
  std::string name;
  bool deflated = false;
  std::uint32_t crc32 = 0;
  std::uint64_t begin = 0, stored = 0, bytes = 0;  // in the file; as they are there; decompressed
  std::uint64_t where = 0;                         // of its entry in the directory, for messages
};

/// The directory of a zip file of one volume, without zip64, encryption or a comment at its end.
[[nodiscard]] std::vector<ZipMember> read_zip_directory(const io::Source& file);

/// The bytes of a deflated member. Throws FormatError, IoError in a build without zlib.
[[nodiscard]] std::vector<std::byte> inflate_member(const io::Source& file,
                                                    const ZipMember& member);

/// The end of a zip file that is being written: local headers come before each member, then the
/// directory.
[[nodiscard]] std::string zip_local_header(const ZipMember& member);
[[nodiscard]] std::string zip_directory(const std::vector<ZipMember>& members, std::uint64_t begin);

}  // namespace braid::data
