#pragma once
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace braid {

/// Returns the index in `names` of an environment variable's value; 0, the default, if it is unset
/// or empty. Throws ArgumentError for another value:
/// `BRAID_GEMM: expected automatic, braid or cublas, got 'mkl'`.
[[nodiscard]] std::size_t choice_from_environment(const char* variable,
                                                  std::initializer_list<std::string_view> names);

}  // namespace braid
