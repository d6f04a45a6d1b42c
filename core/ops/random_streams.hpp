#pragma once
#include <cstdint>

#include <braid/core/random.hpp>

namespace braid::ops {

/// Undoes skip_random_streams(streams), which returned `before`, unless another thread has drawn
/// since: its numbers must not be drawn again.
void take_back_random_streams(const RandomState& before, std::uint64_t streams) noexcept;

/// Returns key.shift. Throws CaptureError if it belongs to a captured step that the thread does not
/// record: each replay has other numbers, and the shift may be gone.
[[nodiscard]] const RandomShift* shift_of(const char* op, const RandomKey& key);

}  // namespace braid::ops
