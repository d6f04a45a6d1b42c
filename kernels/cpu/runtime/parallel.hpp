#pragma once
#include <cstdint>

namespace braid { class Stream; }

// What a kernel needs of the thread pool; free of the standard library, so that the files in simd/
// may include it.
namespace braid::cpu {

/// Calls fn(context, tile) for every tile in [0, tiles), each exactly once, on the calling thread
/// and the device's helpers, and returns when all are done. Which thread takes a tile is not fixed,
/// so a tile's result must not depend on it: cut work in tiles by size, never by threads. Runs
/// inline for one tile or one thread, within another parallel_for, and while another host thread
/// uses the device's helpers. An exception of a tile: no further tiles are started, and the first
/// one caught is rethrown here after all helpers have left. No allocation, no lock.
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
