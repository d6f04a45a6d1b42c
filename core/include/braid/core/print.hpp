#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include <braid/core/error.hpp>
#include <braid/core/tensor.hpp>

namespace braid {

/// How tensors are printed. The defaults are PyTorch's.
struct PrintOptions {
  int precision = 4;                  ///< digits after the point
  std::int64_t threshold = 1000;      ///< a tensor of more elements is printed without its middle
  std::int64_t edgeitems = 3;         ///< items shown at both ends of each dim then
  std::int64_t linewidth = 80;        ///< columns
  std::optional<bool> sci_mode = {};  ///< whether as 1.0000e+00; not set: if the range asks for it
};
/// Sets how tensors are printed in this process from now on. Thread-safe.
///
/// Throws    ArgumentError unless 0 <= precision <= 100, threshold >= 0, edgeitems >= 1 and
///           linewidth >= 1
///
///     set_printoptions({.precision = 2});
///     print(tensor({1.234}));  // tensor([1.23])
void set_printoptions(const PrintOptions& options);
[[nodiscard]] PrintOptions get_printoptions();

namespace detail { void print_line(std::string line); }
/// Writes its arguments with `<<`, then a newline, to stdout as one line. Thread-safe: lines of
/// several threads do not mix.
///
///     print("loss ", loss, " after ", epochs, " epochs");
template <class... A> void print(A&&... a) { detail::print_line(str(a..., '\n')); }

}  // namespace braid
