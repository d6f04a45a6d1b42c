#pragma once
#include <cstddef>

#include "simt/cuda_runtime.hpp"
#include "simt/location.hpp"
#if SIMT_EMULATED
#include "simt/runtime/control.hpp"
#endif

// Tells the emulation's checker about memory that the driver does not see: the parts that the
// caching allocator returns, and what the host reads. Does nothing on a GPU.
namespace braid::cuda {

/// `bytes` at `data` are in use, and uninitialised, for work queued on the stream from now on.
inline void annotate_allocated([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes,
                               [[maybe_unused]] cudaStream_t stream,
                               [[maybe_unused]] simt::Location where = simt::Location::current()) {
#if SIMT_EMULATED
  simt::annotate_allocated(data, bytes, stream, where);
#endif
}
/// They are no longer in use after the work queued on the stream so far. Fresh memory counts as in
/// use.
inline void annotate_freed([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes,
                           [[maybe_unused]] cudaStream_t stream,
                           [[maybe_unused]] simt::Location where = simt::Location::current()) {
#if SIMT_EMULATED
  simt::annotate_freed(data, bytes, stream, where);
#endif
}
/// The host reads pinned memory now.
inline void annotate_host_read([[maybe_unused]] const void* data,
                               [[maybe_unused]] std::size_t bytes,
                               [[maybe_unused]] simt::Location where = simt::Location::current()) {
#if SIMT_EMULATED
  (void)simt::host_read(data, bytes, where);
#endif
}

}  // namespace braid::cuda
