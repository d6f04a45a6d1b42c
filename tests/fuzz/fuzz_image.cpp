// Input: any bytes. read_image returns a tensor whose elements can all be read, or throws
// FormatError.
#include <braid/data/image.hpp>

#include "fuzz.hpp"

using namespace braid;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A small limit, because a valid file may expand up to it.
  fuzz::attempt([&] {
    fuzz::touch(
        braid::data::read_image(std::as_bytes(std::span(data, size)), {.max_pixels = 1 << 14}));
  });
  return 0;
}
