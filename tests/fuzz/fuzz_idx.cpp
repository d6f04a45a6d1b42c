// Any bytes, plain or gzip: read_idx gives a tensor, all of whose numbers can be read, or throws
// FormatError.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include <braid/core/error.hpp>
#include <braid/data/idx.hpp>

namespace {

void try_file(std::span<const std::byte> file) {
  try {
    // A small limit: within it a compressed file may rightly become 1,000 times as large.
    const braid::Tensor t = braid::data::read_idx(file, {.max_bytes = 1 << 20});
    const auto* bytes = static_cast<const unsigned char*>(t.impl()->data());
    volatile unsigned sum = 0;
    for (std::int64_t i = 0; i < t.numel() * static_cast<std::int64_t>(braid::size_of(t.dtype()));
         ++i)
      sum = sum + bytes[i];
  } catch (const braid::FormatError& e) {
    if (std::strlen(e.what()) > 2000) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try_file(bytes);
  std::string framed("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);  // the same as a gzip member's body
  framed.append(reinterpret_cast<const char*>(data), size);
  try_file(std::as_bytes(std::span(framed)));
  return 0;
}
