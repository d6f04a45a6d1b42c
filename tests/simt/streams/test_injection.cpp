#include <braid/core/error.hpp>

#include "rig.hpp"

using namespace braid;
using namespace braid::streams_test;

TEST_CASE("injection: the k-th call fails, once") {
  const Fresh fresh;
  void* p = nullptr;
  simt::fail_call(2, cudaErrorMemoryAllocation);
  CHECK_FALSE(simt::failed_call());
  const std::uint64_t before = simt::calls();
  ok(cudaMalloc(&p, 16));
  void* q = nullptr;
  CHECK(cudaMalloc(&q, 16) == cudaErrorMemoryAllocation);
  CHECK(q == nullptr);
  CHECK(simt::failed_call());
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  ok(cudaMalloc(&q, 16));
  CHECK(simt::calls() == before + 3);  // cudaGetLastError is not counted
  ok(cudaFree(p));
  ok(cudaFree(q));
}

TEST_CASE("injection: of one function, for ever") {
  const Fresh fresh;
  Rig r;
  simt::fail_call(3, cudaErrorInvalidValue, true, "cudaMemsetAsync");
  for (int i = 1; i <= 5; ++i) {
    CHECK(cudaMemsetAsync(r.x, 0, kBytes, r.a) == (i < 3 ? cudaSuccess : cudaErrorInvalidValue));
    ok(cudaStreamSynchronize(r.a));
  }
  simt::fail_call(1, cudaErrorLaunchOutOfResources, false, "cudaLaunchKernel");
  CHECK(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 1.0f) == cudaErrorLaunchOutOfResources);
  ok(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 1.0f));
  simt::fail_call(0, cudaSuccess);
  ok(cudaMemsetAsync(r.x, 0, kBytes, r.a));
}

TEST_CASE("injection: a free that fails has freed all the same") {
  const Fresh fresh;
  void* p = nullptr;
  cudaStream_t stream{};
  cudaEvent_t event{};
  void* pinned = nullptr;
  ok(cudaMalloc(&p, 16));
  ok(cudaMallocHost(&pinned, 16));
  ok(cudaStreamCreate(&stream));
  ok(cudaEventCreate(&event));
  simt::fail_call(1, cudaErrorUnknown, true);
  CHECK(cudaFree(p) == cudaErrorUnknown);
  CHECK(cudaFreeHost(pinned) == cudaErrorUnknown);
  CHECK(cudaStreamDestroy(stream) == cudaErrorUnknown);
  CHECK(cudaEventDestroy(event) == cudaErrorUnknown);
  CHECK(simt::live_objects().empty());
  check_no_reports();
}

TEST_CASE("injection: a sticky code ends the device, whose memory can still be given back") {
  const cudaError_t codes[] = {
      cudaErrorIllegalAddress,     cudaErrorLaunchFailure, cudaErrorMisalignedAddress,
      cudaErrorECCUncorrectable,   cudaErrorAssert,        cudaErrorUnknown,
      cudaErrorIllegalInstruction, cudaErrorLaunchTimeout, cudaErrorHardwareStackError,
      cudaErrorInvalidAddressSpace};
  for (const cudaError_t code : codes) {
    const Fresh fresh;
    CHECK(simt::sticky(code));
    void *p = nullptr, *block = nullptr;
    cudaStream_t stream{};
    ok(cudaStreamCreate(&stream));
    ok(cudaMalloc(&p, 16));
    ok(cudaMallocAsync(&block, 16, stream));
    simt::fail_call(1, code);
    CHECK(cudaStreamSynchronize(stream) == code);
    CHECK(cudaMemsetAsync(p, 0, 16, stream) == code);
    CHECK(cudaDeviceSynchronize() == code);
    CHECK(cudaGetLastError() == code);
    CHECK(cudaGetLastError() == code);
    CHECK(cudaFreeAsync(block, stream) == code);
    CHECK(cudaFree(p) == code);
    CHECK(cudaStreamDestroy(stream) == code);
    CHECK(simt::live_objects().empty());
    int device = -1;
    ok(cudaSetDevice(1));
    ok(cudaGetDevice(&device));
    ok(cudaDeviceSynchronize());
  }
  CHECK_FALSE(simt::sticky(cudaErrorMemoryAllocation));
  CHECK_FALSE(simt::sticky(cudaErrorInvalidValue));
}

TEST_CASE("injection: every call of a small program fails in turn, without a leak") {
  // A program that stops at the first error and then frees everything.
  const auto program = [] {
    cudaStream_t stream{};
    cudaEvent_t event{};
    float *x = nullptr, *y = nullptr;
    cudaError_t e = cudaSuccess;
    const auto step = [&e](cudaError_t now) {
      if (e == cudaSuccess) e = now;
      return e == cudaSuccess;
    };
    const bool fine = step(cudaStreamCreate(&stream)) && step(cudaEventCreate(&event)) &&
                      step(cudaMalloc(&x, kBytes)) && step(cudaMallocAsync(&y, kBytes, stream)) &&
                      step(cudaMemsetAsync(x, 0, kBytes, stream)) &&
                      step(simt::launch(copy_values, 1, kCount, 0, stream, y, x, kCount)) &&
                      step(cudaEventRecord(event, stream)) && step(cudaEventSynchronize(event));
    if (y) step(cudaFreeAsync(y, stream));
    if (x) step(cudaFree(x));
    if (event) step(cudaEventDestroy(event));
    if (stream) step(cudaStreamDestroy(stream));
    CHECK((fine || e != cudaSuccess));
    return e;
  };
  const Fresh fresh;
  ok(program());
  const std::uint64_t calls = simt::calls();
  REQUIRE(calls == 12);
  for (const cudaError_t code :
       {cudaErrorMemoryAllocation, cudaErrorInvalidValue, cudaErrorIllegalAddress}) {
    for (std::uint64_t k = 1; k <= calls; ++k) {
      INFO("call " << k << ", " << cudaGetErrorName(code));
      simt::reset();
      simt::fail_call(k, code);
      CHECK(program() == code);
      CHECK(simt::failed_call());
      CHECK(simt::live_objects().empty());
      check_no_reports();
    }
  }
}

TEST_CASE("injection: from text, as BRAID_SIMT_FAIL has it") {
  const Fresh fresh;
  void* p = nullptr;
  simt::fail_call("2:cudaErrorMemoryAllocation:cudaMalloc");
  ok(cudaMalloc(&p, 16));
  ok(cudaFree(p));
  CHECK(cudaMalloc(&p, 16) == cudaErrorMemoryAllocation);
  ok(cudaMalloc(&p, 16));
  ok(cudaFree(p));
  simt::fail_call("1:801:persistent");
  for (int i = 0; i < 3; ++i) CHECK(cudaMalloc(&p, 16) == cudaErrorNotSupported);
  for (const char* text :
       {"", "1", "x:2", "1:cudaErrorNoSuch", "1:2:persistent:cudaMalloc:more", "-1:2"})
    CHECK_THROWS_AS(simt::fail_call(text), ArgumentError);
  for (const char* text : {"", "lifo", "random:x", "random:1:2", "reverse:1"})
    CHECK_THROWS_AS(simt::set_stream_order(text), ArgumentError);
  simt::set_stream_order("random:7");
  simt::set_stream_order("fifo");
}
