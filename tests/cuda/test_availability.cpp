// What a program may ask, with and without a GPU.
#include <iostream>

#include <braid/kernels/cuda.hpp>

#include "cuda_support.hpp"

using namespace braid;
using namespace braid::test;

TEST_CASE("availability: either there is a device, or a reason", "[cuda][availability]") {
  const std::string reason = cuda::unavailable_reason();
  CHECK(cuda::is_available() == reason.empty());
  CHECK(cuda::is_available() == (device_count(DeviceType::cuda) > 0));
  if (cuda::is_available()) {
    std::cout << "SHOWS: cuda::is_available() is true: " << backend(0).description() << '\n';
  } else {
    CHECK(reason.find("cuda") != std::string::npos);
    std::cout << "SHOWS: cuda::is_available() is false: " << reason << '\n';
  }
#if BRAID_CUDA_SIMT
  CHECK(cuda::is_emulated());
  CHECK(cuda::is_available());
#else
  CHECK_FALSE(cuda::is_emulated());
#endif
}

TEST_CASE("availability: without a device CUDA tensors are refused by name",
          "[cuda][availability][errors]") {
  const int count = device_count(DeviceType::cuda);
  CHECK_THROWS_TEXT(DeviceError, str("device: expected one of cpu:0*, got cuda:", count),
                    zeros({2}, {.device = cuda_device(count)}));
  CHECK_THROWS_TEXT(DeviceError, str("got cuda:", count), ones({2}).to(cuda_device(count)));
}
