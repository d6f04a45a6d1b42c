#pragma once
#include <string_view>

#include <braid/core/error.hpp>
#include <braid/core/tensor.hpp>

namespace braid {

namespace detail { void print_line(std::string line); }
/// Writes its arguments, joined by `<<`, and a newline to stdout as one whole line, from any
/// thread.
template <class... A> void print(A&&... a) { detail::print_line(str(a..., '\n')); }

}  // namespace braid
