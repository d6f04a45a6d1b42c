// Input: any bytes. load_safetensors returns tensors whose bytes can all be read and that are
// unchanged after saving and loading, or throws FormatError.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include <braid/core/io/file.hpp>
#include <braid/core/safetensors.hpp>

#include "fuzz.hpp"

namespace {

// Files are saved to memory: a file system with a single file.
std::string saved;

const braid::io::FileSystem kMemory{
    .open = [](int, const char*, int, unsigned) { return 1'000'000; },
    .close = [](int) { return 0; },
    .fstat =
        [](int, struct stat* info) {
          info->st_mode = S_IFREG | 0600;
          info->st_nlink = 1;
          return 0;
        },
    .stat_in =
        [](int, const char*, struct stat*) {
          errno = ENOENT;
          return -1;
        },
    .pread = [](int, void*, std::size_t, std::int64_t) -> long { std::abort(); },
    .pwrite = [](int, const void* from, std::size_t bytes, std::int64_t offset) -> long {
      saved.resize(static_cast<std::size_t>(offset));
      saved.append(static_cast<const char*>(from), bytes);
      return static_cast<long>(bytes);
    },
    .fsync = [](int) { return 0; },
    .fchmod = [](int, unsigned) { return 0; },
    .lock = [](int) { return 0; },
    .rename = [](int, const char*, const char*) { return 0; },
    .unlink = [](int, const char*) { return 0; },
    .list = [](int, std::vector<std::string>&) { return 0; },
};

void try_file(const std::string& file) {
  using namespace braid;
  std::optional<Safetensors> loaded;
  fuzz::attempt([&] { loaded = load_safetensors(std::as_bytes(std::span(file))); });
  if (!loaded) return;
  saved.clear();
  save_safetensors("file", loaded->tensors, loaded->metadata);
  const Safetensors again = load_safetensors(std::as_bytes(std::span(saved)));
  fuzz::require(again.metadata == loaded->metadata &&
                again.tensors.size() == loaded->tensors.size());
  auto other = again.tensors.begin();
  for (const auto& [name, tensor] : loaded->tensors) {
    const auto a = fuzz::bytes_of(tensor), b = fuzz::bytes_of(other->second);
    fuzz::require(other->first == name && other->second.shape() == tensor.shape() &&
                  other->second.dtype() == tensor.dtype() && std::ranges::equal(a, b));
    ++other;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  braid::io::set_file_system(&kMemory);
  const std::string input(reinterpret_cast<const char*>(data), size);
  try_file(input);
  // Also tries the bytes with a correct header length in front; the header ends at the first 0xff.
  // Most mutations then reach the parser.
  const std::size_t end = std::min(input.find('\xff'), input.size());
  const std::uint64_t length = end;
  std::string framed(reinterpret_cast<const char*>(&length), sizeof length);
  framed.append(input, 0, end);
  if (end < input.size()) framed.append(input, end + 1);
  try_file(framed);
  return 0;
}
