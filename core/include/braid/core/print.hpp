#pragma once
#include <string_view>

#include <braid/core/error.hpp>
#include <braid/core/tensor.hpp>

namespace braid {

namespace detail { void print_line(std::string line); }
/// Writes its arguments with `<<`, then a newline, to stdout as one line. Thread-safe: lines of
/// several threads do not mix.
template <class... A> void print(A&&... a) { detail::print_line(str(a..., '\n')); }

}  // namespace braid
