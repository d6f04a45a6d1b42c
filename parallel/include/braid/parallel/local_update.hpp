#pragma once
// Declares nothing: this header has moved, and an old #include says where it is.
#error "braid: braid/parallel/local_update.hpp is now braid/parallel/replicated_optimizer.hpp"
