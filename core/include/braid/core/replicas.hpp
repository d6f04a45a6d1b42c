#pragma once
#error "braid: braid/core/replicas.hpp is now braid/nn/replica_group.hpp"
