// Tests of the CUDA backend through the device registry, and of the queries that also work without
// a GPU.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include <braid/core/internal/device_clock.hpp>
#include <braid/kernels/cuda.hpp>

#include "cuda_support.hpp"
#include "gate.hpp"
#include "simt/cuda_runtime.hpp"
#if BRAID_CUDA_SIMT
#include <braid/core/internal/worker.hpp>

#include "simt/runtime/control.hpp"
#endif

using namespace braid;
using namespace braid::test;

TEST_CASE("backend: devices are listed after the CPU's; the first is the default", "[backend]") {
  NEEDS_DEVICES(1);
  const std::vector<Device> list = devices(DeviceType::cuda);
  REQUIRE(static_cast<int>(list.size()) == device_count(DeviceType::cuda));
  for (std::size_t i = 0; i < list.size(); ++i) CHECK(list[i] == cuda_device(static_cast<int>(i)));
  if (std::getenv("BRAID_DEVICE") == nullptr) {
    CHECK(best_device() == cuda_device(0));
    CHECK(devices() == list);
  }
  CHECK_THROWS_TEXT(DeviceError, str("expected one of cpu:0*cuda:0*got cuda:", list.size()),
                    device_context(cuda_device(static_cast<int>(list.size()))));
}

TEST_CASE("backend: a device says what it is, and that its memory is its own", "[backend]") {
  NEEDS_DEVICES(1);
  for (const Device d : devices(DeviceType::cuda)) {
    const DeviceContext& context = device_context(d);
    CHECK(matches(context.backend->description(), ", sm_*MiB, GPU "));
    CHECK_FALSE(context.host_memory);
    CHECK(&context.backend->kernels() == context.kernels);
    CHECK(context.stream->device() == d);
    CHECK(&current_stream(d) == context.stream);
  }
  const Tensor x = ones({3}, {.device = cuda_device(0)});
  CHECK(current_stream(cuda_device(0)).native() != nullptr);  // valid after the first use
  const std::unique_ptr<Stream> side = backend(0).make_stream();
  CHECK(side->native() != nullptr);
  CHECK(side->native() != current_stream(cuda_device(0)).native());
  CHECK(side->device() == cuda_device(0));
  CHECK_THROWS_TEXT(DeviceError, "data: expected memory of the host, got cuda:0",
                    ones({2}, {.device = cuda_device(0)}).data<float>());
}

TEST_CASE("backend: work on a device leaves the thread's current one as it was", "[backend]") {
  NEEDS_DEVICES(2);
  int gpus = 0;
  REQUIRE(cudaGetDeviceCount(&gpus) == cudaSuccess);
  for (int current = 0; current < std::min(gpus, 2); ++current) {
    REQUIRE(cudaSetDevice(current) == cudaSuccess);
    for (const Device d : {cuda_device(0), cuda_device(1)}) {
      CHECK((ones({3}, {.device = d}) + 1).sum().item<double>() == 6);
      int now = -1;
      CHECK(cudaGetDevice(&now) == cudaSuccess);
      CHECK(now == current);
    }
  }
  CHECK(cudaSetDevice(0) == cudaSuccess);
}

#if BRAID_CUDA_SIMT
TEST_CASE("backend: a device's own thread makes its GPU current once", "[backend]") {
  NEEDS_DEVICES(2);
  const std::vector<Device> both{cuda_device(0), cuda_device(1)};
  const auto work = [&](int adds) {
    const std::uint64_t before = simt::calls("cudaSetDevice");
    run_on_devices(both, [&](std::size_t i) {
      Tensor x = ones({3}, {.device = both[i]});
      for (int k = 0; k < adds; ++k) x = x + 1;
      (void)x.to_vector<double>();
    });
    return simt::calls("cudaSetDevice") - before;
  };
  (void)work(1);
  CHECK(work(50) <= 2);
}
#endif

TEST_CASE("backend: streams do not wait for the legacy default stream", "[backend]") {
  NEEDS_DEVICES(1);
  (void)ones({3}, {.device = cuda_device(0)});
  const std::unique_ptr<Stream> side = backend(0).make_stream();
  for (Stream* const stream : {&current_stream(cuda_device(0)), side.get()}) {
    unsigned flags = 0;
    CHECK(cudaStreamGetFlags(static_cast<cudaStream_t>(stream->native()), &flags) == cudaSuccess);
    CHECK(flags == cudaStreamNonBlocking);
  }
}

TEST_CASE("backend: the time between two events waits for both", "[backend]") {
  NEEDS_DEVICES(1);
  DeviceClock& clock = *device_clock(cuda_device(0));
  const std::unique_ptr<Stream> at_once = backend(0).make_stream(), held = backend(0).make_stream();
  for (const bool late_first : {false, true}) {
    const std::unique_ptr<Event> early = clock.make_timed_event(), late = clock.make_timed_event();
    at_once->record(*early);
    delay(*held);
    held->record(*late);
    const Event &from = late_first ? *late : *early, &to = late_first ? *early : *late;
    const double seconds = clock.seconds_between(from, to);  // throws if one has not completed
    CHECK(std::abs(seconds) < 5);
    CHECK(clock.seconds_between(to, from) == -seconds);
  }
}

TEST_CASE("child: two logical devices a GPU", "[.child][two]") {
  const int count = device_count(DeviceType::cuda);
  CHECK(count % 2 == 0);
  REQUIRE(count >= 2);
  CHECK(matches(backend(0).description(), "GPU 0"));
  CHECK(matches(backend(1).description(), "GPU 0"));
  if (count > 2) CHECK(matches(backend(2).description(), "GPU 1"));
  // They are two devices: each counts its memory, ops reject tensors of both, copies are explicit.
  const std::size_t before = memory_stats(cuda_device(1)).in_use;
  const Tensor a = full({1000}, 3.0, {.device = cuda_device(0)});
  CHECK(memory_stats(cuda_device(1)).in_use == before);
  const Tensor b = a.to(cuda_device(1));
  CHECK(memory_stats(cuda_device(1)).in_use > before);
  CHECK_THROWS_TEXT(DeviceError, "expected tensors on one device, got cuda:0 and cuda:1", a + b);
  CHECK((b + b).sum().item<double>() == 6000);
}
TEST_CASE("child: a wrong number of logical devices", "[.child][wrong_number]") {
  CHECK_THROWS_TEXT(DeviceError,
                    "BRAID_CUDA_DEVICES_PER_GPU: expected a number from 1 to 64, got '",
                    device_count());
}
TEST_CASE("child: the best device by the environment", "[.child][default]") {
  CHECK(best_device() == Device("cpu:0"));
  CHECK(device_count(DeviceType::cuda) > 0);
}

TEST_CASE("availability: either there is a device, or a reason", "[availability]") {
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
  const int count = device_count(DeviceType::cuda);
  CHECK_THROWS_TEXT(DeviceError, str("device: expected one of cpu:0*, got cuda:", count),
                    zeros({2}, {.device = cuda_device(count)}));
  CHECK_THROWS_TEXT(DeviceError, str("got cuda:", count), ones({2}).to(cuda_device(count)));
}
