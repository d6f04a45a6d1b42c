#pragma once

// BRAID_SANITIZED: 1 in a build with AddressSanitizer or ThreadSanitizer, g++'s or clang's, else 0.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BRAID_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BRAID_SANITIZED 1
#endif
#endif
#if !defined(BRAID_SANITIZED)
#define BRAID_SANITIZED 0
#endif
