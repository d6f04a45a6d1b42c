#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <braid/core/io/file.hpp>

namespace braid::training {

/// One file of a checkpoint, as its manifest says.
struct ManifestFile {
  std::string name;
  std::int64_t bytes = 0;
  std::uint32_t crc32c = 0;
};

/// What stands in a checkpoint's manifest.json. It is written last: a folder without one is no
/// checkpoint.
struct Manifest {
  static constexpr std::int64_t kFormat = 1;
  static constexpr const char* kName = "manifest.json";

  std::string version;                ///< of the library that wrote it
  std::int64_t step = 0;              ///< batches that the run had seen
  std::vector<ManifestFile> files{};  ///< all of them, each once
};

/// As JSON:
/// {"format":1,"braid":"0.1.0","step":471,"files":[{"name":"model.safetensors","bytes":1234,"crc32c":305419896}]}
[[nodiscard]] std::string to_json(const Manifest& manifest);

/// Reads and checks it: every key once and no other, whole numbers, names of `[a-z0-9_-]` ending in
/// `.safetensors`, no name twice.
/// Throws  FormatError; LimitError above 64 KiB, 64 files or for another format; IoError
[[nodiscard]] Manifest read_manifest(const io::Source& source);

}  // namespace braid::training
