#pragma once

namespace braid::detail {

/// Warns, through the handler of the copy of Braid that was there first, if this copy is another
/// one in the same process.
void check_runtimes() noexcept;

}  // namespace braid::detail
