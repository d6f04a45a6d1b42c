#pragma once
// Helpers for the tests of the CUDA backend. The tests run on emulated devices and on GPUs. A test
// that needs more devices than exist prints SKIP and passes.
#include <memory>
#include <vector>

#include <braid/braid.hpp>
#include <braid/core/backend.hpp>

#include "support/errors.hpp"

namespace braid::test {

inline Device cuda_device(int i) { return Device(DeviceType::cuda, i); }
inline DeviceBackend& backend(int i) { return *device_context(cuda_device(i)).backend; }

/// Returns a float32 tensor filled with one value, on the device with that index.
inline Tensor filled(double value, int device, const Shape& shape) {
  return full(shape, value, {.device = cuda_device(device), .dtype = DType::float32});
}

/// Owns a block of device memory for a scope.
class Held {
 public:
  Held(int device, std::size_t bytes, Stream* stream = nullptr)
      : backend_(backend(device)),
        stream_(stream ? *stream : backend_.default_stream()),
        block_(backend_.allocate(bytes, stream_)) {}
  ~Held() { release(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  [[nodiscard]] void* data() const { return block_.data; }
  void release() {
    if (block_.data) backend_.release(block_, stream_);
    block_ = {};
  }

 private:
  DeviceBackend& backend_;
  Stream& stream_;
  Block block_;
};

inline void copy_in(int device, void* to, const void* from, std::size_t bytes) {
  backend(device).copy({to, cuda_device(device), from, Device(), bytes},
                       backend(device).default_stream());
}
inline void copy_out(int device, void* to, const void* from, std::size_t bytes) {
  backend(device).copy({to, Device(), from, cuda_device(device), bytes},
                       backend(device).default_stream());
}

}  // namespace braid::test

#define NEEDS_DEVICES(n)                                          \
  do {                                                            \
    if (::braid::device_count(::braid::DeviceType::cuda) < (n)) { \
      WARN("SKIP(fewer than " << (n) << " CUDA devices)");        \
      return;                                                     \
    }                                                             \
  } while (false)
