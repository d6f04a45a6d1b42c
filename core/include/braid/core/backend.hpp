#pragma once
// Declares nothing: this header has moved, and an old #include says where it is.
#error "braid: braid/core/backend.hpp is now braid/core/internal/backend.hpp"
