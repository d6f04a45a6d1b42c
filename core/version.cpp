#include <braid/core/version.hpp>

namespace braid {

const char* version() noexcept { return BRAID_VERSION; }

}  // namespace braid
