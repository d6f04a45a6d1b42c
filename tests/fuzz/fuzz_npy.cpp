// Input: any bytes. load_npy and load_npz return tensors whose elements can all be read, or throw
// FormatError.
#include <braid/core/npy.hpp>
#include <braid/data/npz.hpp>

#include "fuzz.hpp"

using braid::fuzz::attempt, braid::fuzz::touch;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  attempt([&] { touch(braid::load_npy(bytes)); });
  attempt([&] {
    for (const auto& [name, tensor] : braid::data::load_npz(bytes, {.max_bytes = 1 << 20}))
      touch(tensor);
  });
  std::string framed("\x93NUMPY\1\0", 8);  // the same bytes as a header followed by data
  const std::size_t header = size / 2;
  framed += static_cast<char>(header & 255);
  framed += static_cast<char>(header >> 8 & 255);
  framed.append(reinterpret_cast<const char*>(data), size);
  attempt([&] { touch(braid::load_npy(std::as_bytes(std::span(framed)))); });
  return 0;
}
