// Tests of errors: of CUDA calls, of kernels, and of a context that is permanently broken.
#include <functional>

#include <braid/kernels/cuda.hpp>

#include "cuda/runtime/errors.hpp"
#include "cuda_support.hpp"
#if BRAID_CUDA_SIMT
#include "simt/runtime/control.hpp"
#endif

using namespace braid;
using namespace braid::test;

TEST_CASE("errors: which codes break a context", "[errors]") {
  for (const int code : {700, 702, 710, 714, 715, 716, 717, 718, 719, 999, 12345})
    CHECK(cuda::is_sticky(code));
#if BRAID_CUDA_SIMT
  for (int code = -1; code <= 1100; ++code) {
    INFO("code " << code);
    CHECK(cuda::is_sticky(code) == simt::sticky(static_cast<cudaError_t>(code)));
  }
#endif
  for (const int code : {0,   1,   2,   9,   35,  46,  69,  100, 101, 221, 223,
                         224, 225, 400, 600, 701, 800, 801, 912, 913, 914, 915}) {
    INFO("code " << code);
    CHECK_FALSE(cuda::is_sticky(code));
  }
}

TEST_CASE("errors: an index that only the kernel sees is thrown where the host waits", "[errors]") {
  NEEDS_DEVICES(1);
  const Tensor table = ones({5, 2}, {.device = cuda_device(0)});
  const Tensor good = index_select(table, 0, tensor({0, 3, 4}).to(cuda_device(0)));
  CHECK(good.sum().item<double>() == 6);
  const Tensor bad = index_select(table, 0, tensor({1, 5}).to(cuda_device(0)));
  CHECK_THROWS_TEXT(IndexError, "index_select: expected *[-5, 5), got 5 at position 1",
                    synchronize(cuda_device(0)));
  CHECK_NOTHROW(synchronize(cuda_device(0)));  // reported once only
  const Tensor worse = index_select(table, 0, tensor({-6}).to(cuda_device(0)));
  CHECK_THROWS_TEXT(IndexError, "got -6", worse.to_vector<double>());
  CHECK(good.sum().item<double>() == 6);  // the device still works
  const Tensor logits = zeros({2, 3}, {.device = cuda_device(0)});
  const Tensor loss = cross_entropy(logits, tensor({0, 3}).to(cuda_device(0)));
  CHECK_THROWS_TEXT(IndexError, "cross_entropy: expected *[0, 3), got 3", loss.item<double>());
}

TEST_CASE("errors: wrong calls are refused before anything is queued", "[errors]") {
  NEEDS_DEVICES(1);
  const Tensor x = ones({2, 3}, {.device = cuda_device(0)});
  CHECK_THROWS_TEXT(DeviceError, "add: expected tensors on one device, got cuda:0 and cpu:0",
                    x + ones({2, 3}));
  CHECK_THROWS_AS(x + ones({2, 4}, {.device = cuda_device(0)}), ShapeError);
  CHECK_NOTHROW(synchronize(cuda_device(0)));
}

#if BRAID_CUDA_SIMT

namespace {

struct Injected {
  Injected(std::uint64_t k, cudaError_t code, bool persistent = false, std::string function = {}) {
    simt::fail_call(k, code, persistent, std::move(function));
  }
  ~Injected() { simt::fail_call(0, cudaSuccess); }
};

/// Returns the E that f throws.
template <class E> E caught(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e;
  }
  FAIL("nothing was thrown");
  throw Error("unreachable");
}

}  // namespace

TEST_CASE("errors: a call that fails names itself and the error; the device works on", "[errors]") {
  NEEDS_DEVICES(1);
  const Tensor x = ones({10}, {.device = cuda_device(0)});
  synchronize(cuda_device(0));
  {
    const Injected failure(1, cudaErrorInvalidValue, false, "cudaMemcpyAsync");
    CHECK_THROWS_TEXT(CudaError,
                      "cudaMemcpyAsync: expected success on cuda:0, got cudaErrorInvalidValue (",
                      x.to_vector<double>());
  }
  {
    const Injected failure(1, cudaErrorInvalidConfiguration, false, "cudaLaunchKernel");
    const auto e = caught<CudaError>([&] { (void)(x + x); });
    CHECK(e.code == cudaErrorInvalidConfiguration);
    CHECK(e.name == "cudaErrorInvalidConfiguration");
    CHECK(e.device == cuda_device(0));
    CHECK_FALSE(e.retryable());
  }
  CHECK((x + x).sum().item<double>() == 20);
}

TEST_CASE("errors: a copy without its event is over before its piece is used again", "[errors]") {
  NEEDS_DEVICES(1);
  constexpr int kCopies = 40;  // more than a ring has pieces
  const Held block(0, kCopies);
  unsigned char numbers[kCopies], seen[kCopies];
  const auto copy = [&](int i) {
    copy_in(0, static_cast<char*>(block.data()) + i, numbers + i, 1);
  };
  for (int i = 0; i < kCopies; ++i) numbers[i] = static_cast<unsigned char>(i + 1);
  synchronize(cuda_device(0));
  {
    const Injected failure(1, cudaErrorInvalidValue, false, "cudaEventRecord");
    CHECK_THROWS_TEXT(CudaError,
                      "cudaEventRecord: expected success on cuda:0, got cudaErrorInvalidValue",
                      copy(0));
  }
  for (int i = 1; i < kCopies; ++i) copy(i);  // must not overwrite the bytes of the first copy
  copy_out(0, seen, block.data(), kCopies);
  for (int i = 0; i < kCopies; ++i) CHECK(seen[i] == numbers[i]);
}

TEST_CASE("errors: cudaMalloc that fails once costs the cache, twice an exception", "[errors]") {
  NEEDS_DEVICES(1);
  empty_cache(cuda_device(0));
  { const Held cached(0, 1 << 12); }
  const MemoryStats before = memory_stats(cuda_device(0));
  {
    const Injected failure(1, cudaErrorMemoryAllocation, false, "cudaMalloc");
    CHECK_NOTHROW(Held(0, 1 << 20));
  }
  CHECK(memory_stats(cuda_device(0)).retries == before.retries + 1);
  {
    const Injected failure(1, cudaErrorMemoryAllocation, true, "cudaMalloc");
    CHECK_THROWS_TEXT(OutOfMemoryError,
                      "cuda:0: allocate: expected 33554432 free bytes, got *cudaMalloc: "
                      "cudaErrorMemoryAllocation",
                      Held(0, 1 << 25));
  }
  {
    const Injected failure(1, cudaErrorInvalidValue, false, "cudaMalloc");
    CHECK_THROWS_TEXT(CudaError,
                      "cudaMalloc: expected success on cuda:0, got cudaErrorInvalidValue",
                      Held(0, 1 << 25));
  }
  CHECK(memory_stats(cuda_device(0)).in_use == before.in_use);
  CHECK_NOTHROW(Held(0, 1 << 25));
  CHECK(memory_stats(cuda_device(0)).in_use == before.in_use);
}

TEST_CASE("errors: what goes wrong in a destructor stays there", "[errors]") {
  NEEDS_DEVICES(1);
  for (const char* function :
       {"cudaStreamDestroy", "cudaEventDestroy", "cudaStreamSynchronize", "cudaFree"}) {
    INFO(function);
    std::unique_ptr<Stream> side = backend(0).make_stream();
    std::unique_ptr<Event> event = backend(0).make_event();
    side->record(*event);
    { const Held block(0, 12345, side.get()); }
    const Injected failure(1, cudaErrorInvalidValue, true, function);
    CHECK_NOTHROW(event.reset());
    CHECK_NOTHROW(side.reset());
    CHECK_NOTHROW(empty_cache(cuda_device(0)));
  }
  CHECK(ones({3}, {.device = cuda_device(0)}).sum().item<double>() == 3);
}

TEST_CASE("child: a lost device", "[.child][lost]") {
  Tensor kept = ones({10}, {.device = cuda_device(0)});
  const Tensor other = ones({10}, {.device = cuda_device(1)});
  std::unique_ptr<Stream> side = backend(0).make_stream();
  std::unique_ptr<Event> event = backend(0).make_event();
  side->record(*event);
  simt::fail_call(1, cudaErrorIllegalAddress, false, "cudaLaunchKernel");
  CHECK_THROWS_TEXT(DeviceLostError,
                    "expected a device that works, got cuda:0 lost to cudaErrorIllegalAddress "
                    "(*this process cannot use it again",
                    kept + kept);
  CHECK_THROWS_AS(kept.to(cuda_device(1)), DeviceLostError);  // a copy to the other device fails
  const std::uint64_t calls = simt::calls();
  // Every later use throws without a CUDA call.
  const std::function<void()> uses[] = {[&] { (void)(kept + kept); },
                                        [&] { (void)kept.to_vector<double>(); },
                                        [&] { (void)zeros({3}, {.device = cuda_device(0)}); },
                                        [&] { (void)ones({3}).to(cuda_device(0)); },
                                        [&] { synchronize(cuda_device(0)); },
                                        [&] { (void)event->done(); },
                                        [&] { event->synchronize(); },
                                        [&] { side->record(*event); },
                                        [&] { (void)backend(0).make_stream(); }};
  for (const auto& use : uses) {
    const auto e = caught<DeviceLostError>(use);
    CHECK(e.code == cudaErrorIllegalAddress);
    CHECK(e.name == "cudaErrorIllegalAddress");
    CHECK(e.device == cuda_device(0));
    CHECK(matches(e.what(), "one of the last * launches on cuda:0: #"));
  }
  // The objects that it held can still be released.
  kept = {};
  event.reset();
  side.reset();
  empty_cache(cuda_device(0));
  CHECK(simt::calls() == calls);
  CHECK(memory_stats(cuda_device(0)).in_use == 0);
  CHECK(memory_stats(cuda_device(0)).cached == 0);
  // The other GPU still works.
  CHECK((other + other).sum().item<double>() == 20);
}

TEST_CASE("child: an error that shows later", "[.child][late]") {
  const Device device = cuda_device(0);
  const std::shared_ptr<Stream> side = make_stream(device);
  Tensor x = ones({10}, {.device = device});
  synchronize(device);
  Tensor y;
  {
    const StreamGuard guard(side);
    y = exp(x);
  }
  const Tensor z = relu(x);
  const Tensor other = ones({10}, {.device = cuda_device(1)});
  simt::fail_call(1, cudaErrorMisalignedAddress, false, "cudaStreamSynchronize");
  CHECK_THROWS_TEXT(DeviceLostError,
                    "cudaStreamSynchronize: expected a device that works, got cuda:0 lost to "
                    "cudaErrorMisalignedAddress",
                    synchronize(device));
  const std::uint64_t calls = simt::calls();
  CHECK_THROWS_TEXT(DeviceLostError,
                    "one of the last 4 launches on cuda:0: #1 fill, #2 unary (stream 1), #3 unary, "
                    "#4 fill on cuda:1",
                    synchronize(device));
  CHECK_THROWS_TEXT(DeviceLostError,
                    "one of the last 4 launches on cuda:1: #1 fill on cuda:0, #2 unary (stream 1) "
                    "on cuda:0, #3 unary on cuda:0, #4 fill",
                    synchronize(cuda_device(1)));
  CHECK(simt::calls() == calls);
}

TEST_CASE("child: many launches", "[.child][many]") {
  Tensor x = ones({10}, {.device = cuda_device(0)});
  for (int i = 0; i < 600; ++i) x = relu(x);
  simt::fail_call(1, cudaErrorMisalignedAddress, false, "cudaStreamSynchronize");
  CHECK_THROWS_TEXT(DeviceLostError,
                    "one of the last 16 launches on cuda:0: #586 unary, #587 unary, *#601 unary",
                    synchronize(cuda_device(0)));
}

TEST_CASE("child: logical devices share their GPU's loss", "[.child][shared_loss]") {
  const Tensor a = ones({10}, {.device = cuda_device(0)}),
               b = ones({10}, {.device = cuda_device(1)});
  simt::fail_call(1, cudaErrorLaunchFailure, false, "cudaLaunchKernel");
  CHECK_THROWS_TEXT(DeviceLostError, "cuda:0 lost to cudaErrorLaunchFailure", a + a);
  CHECK_THROWS_TEXT(DeviceLostError, "cuda:1 lost to cudaErrorLaunchFailure", b + b);
}

TEST_CASE("child: no device for any error of the driver", "[.child][no_driver]") {
  CHECK(device_count(DeviceType::cuda) == 0);
  CHECK(best_device() == Device("cpu:0"));
}

TEST_CASE("child: no device at all", "[.child][no_device]") {
  CHECK_FALSE(cuda::is_available());
  CHECK(cuda::unavailable_reason().find("cudaErrorNoDevice") != std::string::npos);
  CHECK(device_count(DeviceType::cuda) == 0);
  CHECK(best_device() == Device("cpu:0"));
  CHECK(sum(ones({3}) * 2.0f).item<float>() == 6.0f);
  CHECK_THROWS_TEXT(DeviceError, "got cuda:0", ones({2}).to(cuda_device(0)));
}

TEST_CASE("child: a variable of the emulation that cannot be used", "[.child][wrong_variable]") {
  CHECK_FALSE(cuda::is_available());
  CHECK(cuda::unavailable_reason().find("BRAID_SIMT_") == 0);
  CHECK_THROWS_TEXT(ArgumentError, "BRAID_SIMT_", (void)ones({2}));
  CHECK_THROWS_TEXT(ArgumentError, "BRAID_SIMT_", (void)device_count());
}

// Errors that a program's own CUDA calls leave on the thread, or in the checker's report, must not
// appear as the engine's errors.
TEST_CASE("errors: an error or a finding of the program's own is not the engine's", "[errors]") {
  NEEDS_DEVICES(1);
  const Tensor x = ones({4}, {.device = cuda_device(0)});
  CHECK(cudaSetDevice(4711) == cudaErrorInvalidDevice);
  CHECK(sum(x * 3.0f).item<float>() == 12.0f);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  int host = 0;
  CHECK(cudaFree(&host) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
  CHECK(simt::last_report().find("bad free") != std::string::npos);
  const Injected failure(1, cudaErrorLaunchOutOfResources, false, "cudaLaunchKernel");
  const std::string text = caught<CudaError>([&] { (void)(x * 2.0f); }).what();
  CHECK(text.find("cudaErrorLaunchOutOfResources") != std::string::npos);
  CHECK(text.find("bad free") == std::string::npos);
}

#endif
