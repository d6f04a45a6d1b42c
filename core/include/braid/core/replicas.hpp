#pragma once
// Declares nothing: this header has moved, and an old #include says where it is.
#error "braid: braid/core/replicas.hpp is now braid/nn/replica_group.hpp"
