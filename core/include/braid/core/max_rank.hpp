#pragma once

namespace braid {

/// The largest number of dimensions of a tensor.
inline constexpr int kMaxRank = 8;

}  // namespace braid
