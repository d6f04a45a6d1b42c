#pragma once
// Hand-made files in the safetensors format.
#include <cstring>

#include "shorthand.hpp"
#include "support/temporary.hpp"
#include "support/tests_dir.hpp"

namespace braid::test {

inline std::string length_of(std::uint64_t n) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &n, 8);
  return bytes;
}
/// Returns a file with this header and `data` zero bytes.
inline std::string file(const std::string& header, std::size_t data = 0) {
  return length_of(header.size()) + header + std::string(data, '\0');
}
inline Safetensors parse(const std::string& bytes, const SafetensorsOptions& options = {}) {
  return load_safetensors(as_bytes(bytes), options, "file");
}
/// Written by safetensors 0.8.0: weight float32 [[1, -2, 0.5]], steps int64 7, mask bool [true,
/// false, true], half float16 [0.5, 65504], metadata format = pt.
inline const std::string kPython = tests_dir() + "/core/python.safetensors";

}  // namespace braid::test
