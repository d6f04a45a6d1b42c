#pragma once

#include "../../core/memory/sanitizers.hpp"

// 1 in a build with AddressSanitizer or ThreadSanitizer, else 0.
#define BRAID_SANITIZED (BRAID_ASAN || BRAID_TSAN)
