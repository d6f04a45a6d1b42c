#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace bench::transfer {

/// Returns 4 KB, 16 KB, … up to `most` bytes, each four times the one before.
[[nodiscard]] std::vector<std::size_t> sizes_up_to(std::size_t most);

/// Parses a size such as `64M`, `1G` or `4096`. Throws std::invalid_argument unless it is from 4 KB
/// to 1 GB.
[[nodiscard]] std::size_t bytes_of(const std::string& text);

/// Returns the memory that the system has available, in bytes; 0 if it does not say.
[[nodiscard]] double available_memory();

/// Returns an empty text, or the reason why copies of `bytes` are skipped: `tensors` tensors of
/// that size together would need more than three quarters of the available memory.
[[nodiscard]] std::string does_not_fit(std::size_t bytes, int tensors);

}  // namespace bench::transfer
