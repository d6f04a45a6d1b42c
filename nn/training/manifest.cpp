#include <braid/nn/internal/manifest.hpp>

#include <algorithm>
#include <limits>
#include <set>

#include <braid/core/error.hpp>
#include <braid/core/internal/io/json.hpp>

namespace braid::training {
namespace {

constexpr std::uint64_t kMaxBytes = 64 * 1024;
constexpr std::size_t kMaxFiles = 64, kMaxName = 128;
constexpr std::string_view kEnding = ".safetensors";

[[noreturn]] void fail(const io::JsonReader& json, const io::Source& source, std::string field,
                       std::string expected, std::string got) {
  throw FormatError(source.path(), static_cast<std::int64_t>(json.offset()), std::move(field),
                    std::move(expected), std::move(got));
}

bool is_file_name(std::string_view name) {
  if (!name.ends_with(kEnding) || name.size() == kEnding.size() || name.size() > kMaxName)
    return false;
  name.remove_suffix(kEnding.size());
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// Calls value(key) for each key of an object. Throws unless each of `keys` occurs exactly once and
/// there is no other key.
template <class F>
void read_object(io::JsonReader& json, const io::Source& source, std::string_view field,
                 const std::set<std::string_view>& keys, const F& value) {
  json.expect('{', field);
  std::set<std::string> seen;
  do {
    const std::string key = json.string("key", kMaxName);
    if (!keys.contains(key))
      fail(json, source, std::string(field), "one of its known keys", io::quoted(key));
    if (!seen.insert(key).second)
      fail(json, source, std::string(field), "each key once", "a second " + io::quoted(key));
    json.expect(':', key);
    value(key);
  } while (json.accept(','));
  json.expect('}', field);
  for (const std::string_view key : keys) {
    if (!seen.contains(std::string(key)))
      fail(json, source, std::string(field), "the key " + io::quoted(key), "none");
  }
}

ManifestFile read_file(io::JsonReader& json, const io::Source& source) {
  ManifestFile file;
  read_object(json, source, "files", {"name", "bytes", "crc32c"}, [&](const std::string& key) {
    if (key == "name") {
      file.name = json.string(key, kMaxName);
      if (!is_file_name(file.name))
        fail(json, source, key, "a name of a-z, 0-9, '_' and '-' that ends in .safetensors",
             io::quoted(file.name));
    } else if (key == "bytes") {
      file.bytes = json.integer(key);
    } else {
      const std::int64_t sum = json.integer(key);
      if (sum > std::numeric_limits<std::uint32_t>::max())
        fail(json, source, key, "a number below 2^32", std::to_string(sum));
      file.crc32c = static_cast<std::uint32_t>(sum);
    }
  });
  return file;
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  std::string json = str(R"({"format":)", Manifest::kFormat, R"(,"braid":)");
  io::append_json_string(json, manifest.version);
  json += str(R"(,"step":)", manifest.step, R"(,"files":[)");
  for (const ManifestFile& file : manifest.files) {
    json += R"({"name":)";
    io::append_json_string(json, file.name);
    json += str(R"(,"bytes":)", file.bytes, R"(,"crc32c":)", file.crc32c, "},");
  }
  if (!manifest.files.empty()) json.pop_back();
  return json + "]}\n";
}

Manifest read_manifest(const io::Source& source) {
  if (source.size() > kMaxBytes)
    throw LimitError(source.path(), 0, "manifest", str("at most ", kMaxBytes, " bytes"),
                     std::to_string(source.size()));
  std::string text = source.read_all();
  if (text.ends_with('\n')) text.pop_back();
  io::JsonReader json(text, 0, source.path());
  Manifest manifest;
  read_object(json, source, "manifest", {"format", "braid", "step", "files"},
              [&](const std::string& key) {
                if (key == "format") {
                  const std::int64_t format = json.integer(key);
                  if (format != Manifest::kFormat)
                    throw LimitError(source.path(), static_cast<std::int64_t>(json.offset()), key,
                                     std::to_string(Manifest::kFormat), std::to_string(format));
                } else if (key == "braid") {
                  manifest.version = json.string(key, kMaxName);
                } else if (key == "step") {
                  manifest.step = json.integer(key);
                } else {
                  json.expect('[', key);
                  std::set<std::string> names;
                  if (json.accept(']')) return;
                  do {
                    manifest.files.push_back(read_file(json, source));
                    if (!names.insert(manifest.files.back().name).second)
                      fail(json, source, key, "each file once",
                           "a second " + io::quoted(manifest.files.back().name));
                    if (names.size() > kMaxFiles)
                      throw LimitError(source.path(), static_cast<std::int64_t>(json.offset()), key,
                                       str("at most ", kMaxFiles, " files"), "more");
                  } while (json.accept(','));
                  json.expect(']', key);
                }
              });
  json.expect_padding("manifest");
  return manifest;
}

}  // namespace braid::training
