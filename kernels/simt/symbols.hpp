#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "simt/location.hpp"

namespace braid::simt {

/// The location of an access: the return address of the call that the compiler inserted, or a
/// Location, packed into one word.
using Site = std::uint64_t;
[[nodiscard]] inline Site site_of(const void* return_address) noexcept {
  return reinterpret_cast<std::uintptr_t>(return_address);
}
[[nodiscard]] inline Site site_of(const Location& where) noexcept {
  return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(where.line & 0x7fff) << 48 |
         reinterpret_cast<std::uintptr_t>(where.file);
}

/// A line of a source file. `file` is the base name; it is empty if the program has no debug
/// information for the line.
struct SourceLine {
  std::string file;
  int line = 0;
};
[[nodiscard]] std::string to_string(const SourceLine& where);  // `kernels.cu:12`, or `?`

/// Returns the source lines of sites. Looks up return addresses with addr2line in the program or
/// shared library that contains them, and caches the results. Takes milliseconds; for reports only.
[[nodiscard]] std::vector<SourceLine> source_lines(const std::vector<Site>& sites);
[[nodiscard]] SourceLine source_line(Site site);

/// Returns the demangled name of a function without its parameters, for example
/// `braid::relu_kernel<float>`. Uses the dynamic symbols or, if a program exports none, its symbol
/// table. Returns `kernel` if neither has it.
[[nodiscard]] std::string kernel_name(const void* function);

[[nodiscard]] std::string base_name(std::string_view path);

}  // namespace braid::simt
