#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <braid/core/io/file.hpp>

namespace braid::training {

/// One file of a checkpoint, as listed in its manifest.
struct ManifestFile {
  std::string name;
  std::int64_t bytes = 0;
  std::uint32_t crc32c = 0;
};

/// The contents of a checkpoint's manifest.json. It is written last: a folder without it is not a
/// checkpoint.
struct Manifest {
  static constexpr std::int64_t kFormat = 1;
  static constexpr const char* kName = "manifest.json";

  std::string version;                ///< version of the library that wrote it
  std::int64_t step = 0;              ///< number of batches that the run had processed
  std::vector<ManifestFile> files{};  ///< all of them, each once
};

/// Returns the manifest as JSON, on one line:
/// {"format":1,"braid":"0.1.0","step":471,
///  "files":[{"name":"model.safetensors","bytes":1234,"crc32c":305419896}]}
[[nodiscard]] std::string to_json(const Manifest& manifest);

/// Reads and checks a manifest: every key exactly once and no other keys, integers, file names of
/// `[a-z0-9_-]` that end in `.safetensors`, no name twice.
/// Throws  FormatError; LimitError if it has more than 64 KiB, more than 64 files or another format
///         number; IoError
[[nodiscard]] Manifest read_manifest(const io::Source& source);

}  // namespace braid::training
