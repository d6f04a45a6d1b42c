#pragma once

namespace braid {

/// Most dimensions that a tensor can have.
inline constexpr int kMaxRank = 8;

}  // namespace braid
