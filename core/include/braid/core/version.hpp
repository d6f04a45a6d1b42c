#pragma once

namespace braid {

/// The version of the library that is linked, as "major.minor.patch".
const char* version() noexcept;

}  // namespace braid
