#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "simt/location.hpp"

namespace braid::simt {

/// Where an access stands: the return address of the compiler's call, or a Location, packed in one
/// word.
using Site = std::uint64_t;
[[nodiscard]] inline Site site_of(const void* return_address) noexcept {
  return reinterpret_cast<std::uintptr_t>(return_address);
}
[[nodiscard]] inline Site site_of(const Location& where) noexcept {
  return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(where.line & 0x7fff) << 48 |
         reinterpret_cast<std::uintptr_t>(where.file);
}

/// A line of a source file; file is its base name, empty if the program has no debug information
/// for it.
struct SourceLine {
  std::string file;
  int line = 0;
};
[[nodiscard]] std::string to_string(const SourceLine& where);  // `kernels.cu:12`, or `?`

/// The source lines of sites. Return addresses are looked up with addr2line in the program or
/// shared library that holds them, and remembered: milliseconds, for reports only.
[[nodiscard]] std::vector<SourceLine> source_lines(const std::vector<Site>& sites);
[[nodiscard]] SourceLine source_line(Site site);

/// The demangled name of a function without its parameters: `braid::relu_kernel<float>`; from the
/// dynamic symbols or, where a program exports none, from its symbol table. `kernel` if there is
/// neither.
[[nodiscard]] std::string kernel_name(const void* function);

[[nodiscard]] std::string base_name(std::string_view path);

}  // namespace braid::simt
