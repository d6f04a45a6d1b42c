#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace braid::test {

/// Returns the magic number and the sizes of an IDX file.
inline std::string header(int type, const std::vector<std::uint32_t>& sizes) {
  std::string s{'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const std::uint32_t n : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) s += static_cast<char>((n >> shift) & 0xff);
  return s;
}

}  // namespace braid::test
