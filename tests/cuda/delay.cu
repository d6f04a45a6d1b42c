#include "cuda/delay.hpp"

#include "cuda/launch.hpp"
#include "simt/simt.hpp"

#if SIMT_EMULATED
#include <chrono>
#include <thread>
#endif

namespace braid::test {

#if SIMT_EMULATED

void delay(Stream& stream) {
  const cuda::LaunchScope scope("delay", stream);
  scope.check(cudaLaunchHostFunc(
      scope.stream(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); },
      nullptr));
}

#else

// One thread: the rest of the GPU is free for the streams that must wait, or must not.
__global__ void delay_kernel(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) __nanosleep(1000);
}

void delay(Stream& stream) {
  constexpr long long kCycles = 10'000'000;  // 5 ms at 2 GHz
  const cuda::LaunchScope scope("delay", stream);
  scope.check(simt::launch(delay_kernel, 1, 1, 0, scope.stream(), kCycles));
}

#endif

}  // namespace braid::test
