#pragma once

/// On a thread_local variable of a hot path: it has a fixed place in each thread, which saves a
/// call for each access from a shared library. All of the library's thread-local variables are then
/// placed when it is loaded. With the CUDA runtime they have alignment 4096, which glibc refuses to
/// place in a library that a running program loads, such as a module of Python. So a build with
/// CUDA does without; programs that link the static library lose nothing, because the linker knows
/// the places.
#if BRAID_LOADS_CUDA_RUNTIME
#define BRAID_FAST_THREAD_LOCAL
#else
#define BRAID_FAST_THREAD_LOCAL [[gnu::tls_model("initial-exec")]]
#endif
