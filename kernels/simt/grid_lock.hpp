#pragma once
#include <mutex>

namespace braid::simt {

/// Held while an operation is checked: the checker handles one at a time.
[[nodiscard]] std::mutex& grid_mutex();

}  // namespace braid::simt
