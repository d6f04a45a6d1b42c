#pragma once
#include <string>
#include <vector>

#include "kernels.hpp"
#include "simt/cuda_runtime.hpp"
#include "simt/runtime/control.hpp"
#include "support/catch.hpp"

namespace braid::streams_test {

inline constexpr int kCount = 256;
inline constexpr std::size_t kBytes = kCount * sizeof(float);

inline void ok(cudaError_t error, int line = __builtin_LINE()) {
  INFO("line " << line << ": " << cudaGetErrorName(error) << "\n" << simt::last_report());
  REQUIRE(error == cudaSuccess);
}

inline void expect(cudaError_t error, cudaError_t expected, int line = __builtin_LINE()) {
  INFO("line " << line << ": " << cudaGetErrorName(error));
  CHECK(error == expected);
}

/// A fresh runtime, and one again at the end.
struct Fresh {
  explicit Fresh(simt::ReportMode mode = simt::ReportMode::collect) {
    simt::reset();
    simt::set_report_mode(mode);
  }
  ~Fresh() {
    simt::reset();
    simt::set_report_mode(simt::ReportMode::sticky);
    simt::set_stream_order(simt::StreamOrder::fifo);
  }
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;
};

/// Two streams that do not know each other, two blocks of device 0, pinned memory and an event.
/// Everything is given back at the end.
struct Rig {
  cudaStream_t a{}, b{};
  cudaEvent_t event{};
  float *x{}, *y{}, *pinned{};
  Rig() {
    ok(cudaSetDevice(0));
    ok(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    ok(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    ok(cudaMalloc(&x, kBytes));
    ok(cudaMalloc(&y, kBytes));
    ok(cudaMallocHost(&pinned, kBytes));
    ok(cudaMemset(x, 0, kBytes));
    ok(cudaMemset(y, 0, kBytes));
    ok(cudaDeviceSynchronize());
    for (int i = 0; i < kCount; ++i) pinned[i] = static_cast<float>(i);
  }
  ~Rig() {
    (void)cudaSetDevice(0);
    (void)cudaDeviceSynchronize();
    if (x) (void)cudaFree(x);
    if (y) (void)cudaFree(y);
    if (pinned) (void)cudaFreeHost(pinned);
    (void)cudaEventDestroy(event);
    if (a) (void)cudaStreamDestroy(a);
    if (b) (void)cudaStreamDestroy(b);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  /// b goes on after what a has now.
  void b_waits_for_a() {
    ok(cudaEventRecord(event, a));
    ok(cudaStreamWaitEvent(b, event));
  }
};

struct OrderOf {
  simt::StreamOrder order;
  std::uint64_t seed;
};
inline constexpr OrderOf kOrders[] = {{simt::StreamOrder::fifo, 0},
                                      {simt::StreamOrder::reverse, 0},
                                      {simt::StreamOrder::random, 1},
                                      {simt::StreamOrder::random, 2}};

inline std::string all_texts(const std::vector<simt::Report>& reports) {
  std::string text;
  for (const auto& report : reports) text += report.text + "\n";
  return text;
}

}  // namespace braid::streams_test
