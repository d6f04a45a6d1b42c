#pragma once
// Shared by the conformance tests. The same kernels and the same expected bits run on emulated
// devices and, in a build with nvcc, on a GPU. If both pass, the emulation agrees with the
// hardware.
#include "cuda/cuda_support.hpp"
#include "simt/cuda_runtime.hpp"

#if SIMT_EMULATED

#include "simt/support.hpp"

namespace braid::simt_tests {

/// Runs `body` with cp.async copies that complete late, in the wait, and early, immediately.
template <class Body> void early_and_late(Body body) {
  const KeepConfig keep;
  for (const bool late : {true, false}) {
    simt::Config config = simt::config();
    config.late_async = late;
    simt::set_config(config);
    body(late ? "late" : "early");
  }
}

}  // namespace braid::simt_tests

#else

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace braid::simt_tests {

inline void ok(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

/// Device memory of a test. Every byte is 0xff before it is set.
template <class T> class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    void* p = nullptr;
    ok(cudaMalloc(&p, std::max<std::size_t>(count * sizeof(T), 1)));
    data_ = static_cast<T*>(p);
    ok(cudaMemset(p, 0xff, count * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    ok(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { (void)cudaFree(data_); }
  [[nodiscard]] std::vector<T> get() const {
    std::vector<T> values(count_);
    ok(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  [[nodiscard]] T* data() const noexcept { return data_; }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

/// The order on a GPU cannot be chosen.
template <class Body> void in_all_orders(Body body) { body(); }
template <class Body> void early_and_late(Body body) { body("on the GPU"); }

}  // namespace braid::simt_tests

#endif
