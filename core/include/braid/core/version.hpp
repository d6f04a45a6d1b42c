#pragma once

namespace braid {

/// Returns the version of the linked library as "major.minor.patch".
const char* version() noexcept;

}  // namespace braid
