#pragma once
#include <cstddef>

// Detects which sanitizer is on, and tells AddressSanitizer which cached memory is in use.
#if defined(__SANITIZE_ADDRESS__)
#define BRAID_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BRAID_ASAN 1
#endif
#endif
#ifndef BRAID_ASAN
#define BRAID_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__)
#define BRAID_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BRAID_TSAN 1
#endif
#endif
#ifndef BRAID_TSAN
#define BRAID_TSAN 0
#endif

#if BRAID_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace braid::memory {

/// Makes AddressSanitizer report every access to these bytes. Does nothing without it.
inline void poison([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) noexcept {
#if BRAID_ASAN
  ASAN_POISON_MEMORY_REGION(data, bytes);
#endif
}
inline void unpoison([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) noexcept {
#if BRAID_ASAN
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
#endif
}

}  // namespace braid::memory
