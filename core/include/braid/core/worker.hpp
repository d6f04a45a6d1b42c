#pragma once
// Declares nothing: this header has moved, and an old #include says where it is.
#error "braid: braid/core/worker.hpp is now braid/core/internal/worker.hpp"
