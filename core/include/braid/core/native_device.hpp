#pragma once
#error "braid: braid/core/native_device.hpp is now braid/core/internal/native_device.hpp"
