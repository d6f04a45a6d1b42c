#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace bench::transfer {

/// 4 KB, 16 KB, … up to `most` bytes, each four times the last.
[[nodiscard]] std::vector<std::size_t> sizes_up_to(std::size_t most);

/// `64M`, `1G`, `4096`. Throws std::invalid_argument unless it is from 4 KB to 1 GB.
[[nodiscard]] std::size_t bytes_of(const std::string& text);

/// What the system could give now, in bytes; 0 if it does not say.
[[nodiscard]] double available_memory();

/// Empty, or why copies of `bytes` are left out: `tensors` of that size, all at once, would need
/// more than three quarters of what is available.
[[nodiscard]] std::string does_not_fit(std::size_t bytes, int tensors);

}  // namespace bench::transfer
