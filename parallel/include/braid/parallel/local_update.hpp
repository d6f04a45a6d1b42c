#pragma once
#error "braid: braid/parallel/local_update.hpp is now braid/parallel/replicated_optimizer.hpp"
