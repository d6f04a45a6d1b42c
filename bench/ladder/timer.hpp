#pragma once
#include <vector>

#include <braid/core/error.hpp>
#include <braid/core/stream.hpp>

#include "simt/cuda_runtime.hpp"
#include "support/timing.hpp"

namespace braid::ladder {

/// Throws Error unless the call succeeded.
inline void check(cudaError_t error) {
  if (error != cudaSuccess)
    throw Error(std::string("ladder: expected a CUDA call to succeed, got ") +
                cudaGetErrorName(error));
}

class TimedEvent {
 public:
  TimedEvent() { check(cudaEventCreate(&event_)); }
  ~TimedEvent() { (void)cudaEventDestroy(event_); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Returns the median time of `queue()` on the device in us, over `runs` runs between events, after
/// one run that is not timed.
template <class F> [[nodiscard]] double time_on(Stream& stream, int runs, F queue) {
  queue();
  stream.synchronize();
  const auto native = static_cast<cudaStream_t>(stream.native());
  const TimedEvent start, end;
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    check(cudaEventRecord(start.get(), native));
    queue();
    check(cudaEventRecord(end.get(), native));
    check(cudaEventSynchronize(end.get()));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.get(), end.get()));
    times.push_back(1e3 * static_cast<double>(milliseconds));
  }
  return bench::median(std::move(times));
}

}  // namespace braid::ladder
