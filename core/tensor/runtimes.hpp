#pragma once

namespace braid::detail {

/// Warns if the process already has another copy of Braid, through the warning handler of the first
/// copy.
void check_runtimes() noexcept;

}  // namespace braid::detail
