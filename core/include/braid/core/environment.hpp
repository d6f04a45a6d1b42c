#pragma once
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace braid {

/// Which of the names an environment variable has, by its place in the list; 0, the default, if it
/// is unset or empty.
/// Throws ArgumentError `BRAID_GEMM: expected braid or cublas, got 'mkl'`.
[[nodiscard]] std::size_t choice_from_environment(const char* variable,
                                                  std::initializer_list<std::string_view> names);

}  // namespace braid
