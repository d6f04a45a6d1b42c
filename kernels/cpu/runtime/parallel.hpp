#pragma once
#include <cstdint>

namespace braid { class Stream; }

// The interface of the thread pool for kernels. It does not use the standard library, so that the
// files in simd/ may include it.
namespace braid::cpu {

/// Calls fn(context, tile) exactly once for every tile in [0, tiles), on the calling thread and the
/// device's helpers, and returns when all are done. Any thread may run any tile, so a tile's result
/// must not depend on its thread: split work into tiles by size, never by threads. Runs inline for
/// one tile or one thread, within another parallel_for, and while another host thread uses the
/// device's helpers. If a tile throws, no further tiles are started, and the first exception caught
/// is rethrown here after all helpers have finished. Does not allocate or lock.
void parallel_for(Stream& stream, std::int64_t tiles, void (*fn)(void* context, std::int64_t tile),
                  void* context);

/// The same for a callable `f(tile)`, taken by reference. `static`: each file has its own copy,
/// compiled for its own instruction set.
template <class F> static inline void parallel_for(Stream& stream, std::int64_t tiles, F& f) {
  parallel_for(
      stream, tiles, [](void* context, std::int64_t tile) { (*static_cast<F*>(context))(tile); },
      const_cast<void*>(static_cast<const volatile void*>(&f)));
}

}  // namespace braid::cpu
