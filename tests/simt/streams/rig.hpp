#pragma once
#include <string>
#include <vector>

#include "kernels.hpp"
#include "simt/cuda_runtime.hpp"
#include "simt/runtime/control.hpp"
#include "support/check.hpp"

namespace braid::streams_test {

inline constexpr int kCount = 256;
inline constexpr std::size_t kBytes = kCount * sizeof(float);

inline void ok(cudaError_t error, int line = __builtin_LINE()) {
  INFO("line " << line << ": " << cudaGetErrorName(error) << "\n" << simt::last_report());
  REQUIRE(error == cudaSuccess);
}

inline constexpr cudaMemcpyKind kDeviceToDevice = cudaMemcpyDeviceToDevice,
                                kHostToDevice = cudaMemcpyHostToDevice,
                                kDeviceToHost = cudaMemcpyDeviceToHost,
                                kDefault = cudaMemcpyDefault;

/// Resets the runtime at the start and at the end.
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

/// Two streams with no order between them, two blocks on device 0, pinned memory and an event.
/// Everything is freed at the end.
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

  /// Orders b after what a contains now.
  void b_waits_for_a() { wait(b, a); }
  void a_waits_for_b() { wait(a, b); }
  /// Allocates memory in the order of a.
  [[nodiscard]] float* block_of_a() {
    float* block = nullptr;
    ok(cudaMallocAsync(&block, kBytes, a));
    return block;
  }

 private:
  void wait(cudaStream_t later, cudaStream_t earlier) {
    ok(cudaEventRecord(event, earlier));
    ok(cudaStreamWaitEvent(later, event));
  }
};

/// Runs the body under every order of the executor, each time with a reset runtime.
template <class F> void in_every_order(F&& body) {
  for (const char* const order : {"fifo", "reverse", "random:1", "random:2"}) {
    INFO("order " << order);
    const Fresh fresh;
    simt::set_stream_order(order);
    body();
  }
}

inline std::string all_texts(const std::vector<simt::Report>& reports) {
  std::string text;
  for (const auto& report : reports) text += report.text + "\n";
  return text;
}

/// Checks that nothing was reported.
inline void check_no_reports() { CHECK(all_texts(simt::take_reports()) == ""); }
/// As check_no_reports, and that no object and no error is left.
inline void check_clean() {
  check_no_reports();
  CHECK(simt::live_objects().empty());
  CHECK(cudaGetLastError() == cudaSuccess);
}

/// Runs a correct program under every order of the executor.
template <class F> void check_right(const char* name, F&& program) {
  INFO(name);
  in_every_order([&] {
    {
      Rig r;
      program(r);
    }
    check_clean();
  });
}

/// A program with one mistake, or without it if `fixed`. The mistake must be reported with the
/// locations of its calls, under every order. The program without it must not be reported.
using Program = void (*)(Rig& r, bool fixed);
void check_program(const char* name, simt::ReportKind kind, Program program,
                   const std::string& file = __builtin_FILE());

/// This line of a program is at fault: the report must name it.
void mark(int line = __builtin_LINE());
inline void here(cudaError_t error, int line = __builtin_LINE()) {
  mark(line);
  ok(error, line);
}
/// The line is at fault, and the runtime refuses the call with `code`.
inline void here(cudaError_t error, bool fixed, cudaError_t code, int line = __builtin_LINE()) {
  mark(line);
  INFO("line " << line << ": " << cudaGetErrorName(error));
  CHECK(error == (fixed ? cudaSuccess : code));
}

}  // namespace braid::streams_test
