// Input: any bytes, plain or gzip. read_idx returns a tensor whose elements can all be read, or
// throws FormatError.
#include <braid/data/idx.hpp>

#include "fuzz.hpp"

using namespace braid;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string framed("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);  // the bytes as a gzip member's body
  framed.append(reinterpret_cast<const char*>(data), size);
  const std::span<const std::byte> files[] = {std::as_bytes(std::span(data, size)),
                                              std::as_bytes(std::span(framed))};
  for (const auto file : files)
    // A small limit: within it, a valid compressed file may expand up to 1,000 times.
    fuzz::attempt([&] { fuzz::touch(braid::data::read_idx(file, {.max_bytes = 1 << 20})); });
  return 0;
}
