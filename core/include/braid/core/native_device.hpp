#pragma once
// Declares nothing: this header has moved, and an old #include says where it is.
#error "braid: braid/core/native_device.hpp is now braid/core/internal/native_device.hpp"
