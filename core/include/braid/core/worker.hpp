#pragma once
#error "braid: braid/core/worker.hpp is now braid/core/internal/worker.hpp"
