#pragma once
#error "braid: braid/core/backend.hpp is now braid/core/internal/backend.hpp"
