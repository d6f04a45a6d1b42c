#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "rig.hpp"
#include "simt/checker.hpp"

using namespace braid;
using namespace braid::streams_test;

TEST_CASE("emulation: allocation, capacity and what is alive") {
  const Fresh fresh;
  unsigned char* pinned = nullptr;
  float* device = nullptr;
  ok(cudaMallocHost(&pinned, 8));
  ok(cudaMalloc(&device, 4));
  CHECK(pinned[0] == 0xff);  // new memory is poisoned
  CHECK(pinned[7] == 0xff);
  CHECK(std::memcmp(device, pinned, 4) == 0);
  ok(cudaFree(device));
  ok(cudaFreeHost(pinned));
  simt::set_devices(2, 4096);
  void *p = nullptr, *q = &p;
  ok(cudaMalloc(&p, 3000));
  CHECK(reinterpret_cast<std::uintptr_t>(p) % 256 == 0);
  CHECK(cudaMalloc(&q, 2000) == cudaErrorMemoryAllocation);
  CHECK(q == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);  // not sticky
  ok(cudaMalloc(&q, 1000));
  CHECK(cudaMalloc(&q, std::numeric_limits<std::size_t>::max()) == cudaErrorMemoryAllocation);
  ok(cudaSetDevice(1));
  void* there = nullptr;
  ok(cudaMalloc(&there, 4096));  // each device has its own memory
  const auto alive = simt::live_objects();
  REQUIRE(alive.size() == 3);
  CHECK(alive[0].what == "device memory");
  CHECK(alive[0].text.find("cudaMalloc at test_memory.cpp:") != std::string::npos);
  CHECK(cudaMalloc(static_cast<void**>(nullptr), 1) == cudaErrorInvalidValue);
  ok(cudaMalloc(&q, 0));
  CHECK(q == nullptr);
  ok(cudaFree(nullptr));
  ok(cudaFree(there));
  simt::reset();
  CHECK(simt::live_objects().empty());
  simt::set_devices(2, std::size_t{8} << 30);
}

TEST_CASE("emulation: copies arrive, in both dimensions and all directions") {
  in_every_order([] {
    Rig r;
    std::vector<float> host(kCount), back(kCount, 0.0f);
    for (int i = 0; i < kCount; ++i)
      host[static_cast<std::size_t>(i)] = static_cast<float>(i) * 0.5f;
    ok(cudaMemcpyAsync(r.x, host.data(), kBytes, kHostToDevice, r.a));
    std::fill(host.begin(), host.end(), -1.0f);  // pageable memory was staged in the call
    ok(cudaMemcpyAsync(r.y, r.x, kBytes, cudaMemcpyDefault, r.a));
    // and is complete when the call returns
    ok(cudaMemcpyAsync(back.data(), r.y, kBytes, kDeviceToHost, r.a));
    CHECK(back[7] == 3.5f);
    CHECK(back[255] == 127.5f);
    // 4 rows of 8 floats, from rows of 16 to rows of 32.
    ok(cudaMemset(r.y, 0, kBytes));
    ok(cudaDeviceSynchronize());
    ok(cudaMemcpy2DAsync(r.y, 32 * 4, r.x, 16 * 4, 8 * 4, 4, kDeviceToDevice, r.b));
    ok(cudaMemcpyAsync(back.data(), r.y, kBytes, kDeviceToHost, r.b));
    CHECK(back[32] == 8.0f);
    CHECK(back[3 * 32 + 7] == 27.5f);
    CHECK(back[8] == 0.0f);
    CHECK(cudaMemcpy2D(r.y, 16, r.x, 64, 32, 4, kDeviceToDevice) == cudaErrorInvalidPitchValue);
    ok(cudaMemcpy(back.data(), host.data(), kBytes, cudaMemcpyHostToHost));
    CHECK(back[9] == -1.0f);
    CHECK(cudaMemcpy(back.data(), host.data(), 4, static_cast<cudaMemcpyKind>(9)) ==
          cudaErrorInvalidMemcpyDirection);
    CHECK(cudaMemcpy(nullptr, r.x, 4, kDeviceToHost) == cudaErrorInvalidValue);
    ok(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
    check_no_reports();
  });
}

TEST_CASE("emulation: copies between devices") {
  const Fresh fresh;
  Rig r;
  float* there = nullptr;
  ok(cudaSetDevice(1));
  ok(cudaMalloc(&there, kBytes));
  ok(cudaSetDevice(0));
  ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, kHostToDevice, r.a));
  ok(cudaMemcpyPeerAsync(there, 1, r.x, 0, kBytes, r.a));
  ok(cudaStreamSynchronize(r.a));
  ok(cudaMemcpyPeer(r.y, 0, there, 1, kBytes));
  std::vector<float> back(kCount);
  ok(cudaMemcpy(back.data(), r.y, kBytes, kDeviceToHost));
  CHECK(back[100] == 100.0f);
  CHECK(cudaMemcpyPeer(there, 5, r.x, 0, kBytes) == cudaErrorInvalidDevice);
  ok(cudaDeviceEnablePeerAccess(1, 0));
  ok(cudaMemcpyAsync(r.y, there, kBytes, kDeviceToDevice, r.a));
  ok(cudaStreamSynchronize(r.a));
  ok(cudaFree(there));
  check_no_reports();
}

TEST_CASE("emulation: pointers know what they are") {
  const Fresh fresh;
  Rig r;
  cudaPointerAttributes a{};
  ok(cudaPointerGetAttributes(&a, r.x + 5));
  CHECK(a.type == cudaMemoryTypeDevice);
  CHECK(a.device == 0);
  CHECK(a.devicePointer == r.x + 5);
  ok(cudaPointerGetAttributes(&a, r.pinned));
  CHECK(a.type == cudaMemoryTypeHost);
  int here = 0;
  ok(cudaPointerGetAttributes(&a, &here));
  CHECK(a.type == cudaMemoryTypeUnregistered);
  std::vector<float> own(kCount, 1.0f);
  ok(cudaHostRegister(own.data(), kBytes, cudaHostRegisterDefault));
  ok(cudaPointerGetAttributes(&a, own.data() + 3));
  CHECK(a.type == cudaMemoryTypeHost);
  CHECK(cudaHostRegister(own.data(), kBytes, cudaHostRegisterDefault) ==
        cudaErrorHostMemoryAlreadyRegistered);
  ok(cudaHostUnregister(own.data()));
  CHECK(cudaHostUnregister(own.data()) == cudaErrorHostMemoryNotRegistered);
  void* device = nullptr;
  ok(cudaHostGetDevicePointer(&device, r.pinned, 0));
  CHECK(device == r.pinned);
  CHECK(cudaHostGetDevicePointer(&device, &here, 0) == cudaErrorInvalidValue);
  (void)simt::take_reports();  // discards the report of the second unregister
}

TEST_CASE("emulation: stream-ordered memory and its pool") {
  const Fresh fresh;
  Rig r;
  cudaMemPool_t pool{};
  ok(cudaDeviceGetDefaultMemPool(&pool, 0));
  std::uint64_t before = 0, used = 0, threshold = 1 << 20;
  ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &before));
  float* block = nullptr;
  ok(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&block), kBytes, pool, r.a));
  ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  CHECK(used == before + kBytes);
  ok(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  threshold = 0;
  ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  CHECK(threshold == 1 << 20);
  ok(simt::launch(fill, 1, kCount, 0, r.a, block, kCount, 4.0f));
  ok(cudaMemcpyAsync(r.pinned, block, kBytes, kDeviceToHost, r.a));
  ok(cudaFreeAsync(block, r.a));
  ok(cudaStreamSynchronize(r.a));
  CHECK(r.pinned[17] == 4.0f);
  ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  CHECK(used == before);
  ok(cudaFreeAsync(r.x, r.a));  // memory of cudaMalloc may be freed this way too
  r.x = nullptr;
  check_no_reports();
  CHECK(cudaFreeAsync(r.pinned, r.a) == cudaErrorInvalidValue);
  const auto reports = simt::take_reports();
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].kind == simt::ReportKind::bad_free);
  CHECK(cudaMemPoolTrimTo(nullptr, 0) == cudaErrorInvalidValue);
}

TEST_CASE("emulation: host code of a kernel's file that touches device memory is reported") {
  const Fresh fresh;
  Rig r;
  float own = 2;
  CHECK(first_on_host(&own) + first_on_host(r.pinned + 3) == 5);
  set_on_host(r.pinned);
  check_no_reports();
  if (!simt::kernels_are_instrumented()) return;
  (void)first_on_host(r.x + 1);
  set_on_host(r.y);
  const auto reports = simt::take_reports();
  REQUIRE(reports.size() == 2);
  for (const auto& report : reports) {
    CHECK(report.kind == simt::ReportKind::host_access);
    CHECK(report.file == "kernels.cu");
    CHECK(report.line > 0);
  }
  CHECK(reports[0].text.find("the host reads memory of cuda:0 at kernels.cu:") !=
        std::string::npos);
  CHECK(reports[1].text.find("writes") != std::string::npos);
}

TEST_CASE("emulation: a segment with blocks given out and taken back is freed in silence") {
  in_every_order([] {
    Rig r;
    float* segment = nullptr;
    ok(cudaMalloc(&segment, 4 * kBytes));
    simt::annotate_freed(segment, 4 * kBytes, r.a);
    for (int turn = 0; turn < 3; ++turn) {
      simt::annotate_allocated(segment + kCount, kBytes, r.a);
      ok(simt::launch(fill, 1, kCount, 0, r.a, segment + kCount, kCount, 1.0f));
      ok(simt::launch(copy_values, 1, kCount, 0, r.a, r.x, segment + kCount, kCount));
      simt::annotate_freed(segment + kCount, kBytes, r.a);
    }
    r.b_waits_for_a();
    simt::annotate_allocated(segment, 2 * kBytes, r.b);
    ok(cudaMemsetAsync(segment, 0, 2 * kBytes, r.b));
    simt::annotate_freed(segment, 2 * kBytes, r.b);
    ok(cudaFree(segment));
    check_no_reports();
  });
}

TEST_CASE("emulation: a pending copy leaves no right value in its target") {
  const Fresh fresh;
  Rig r;
  ok(cudaMemcpyAsync(r.pinned, r.x, kBytes, kDeviceToHost, r.a));
  CHECK(r.pinned[3] != r.pinned[3]);  // NaN
  ok(cudaStreamSynchronize(r.a));
  CHECK(r.pinned[3] == 0.0f);
  // Copying out of and back from the same pinned memory is right.
  ok(cudaMemsetAsync(r.x, 0, kBytes, r.a));
  ok(cudaMemcpyAsync(r.pinned, r.x, kBytes, kDeviceToHost, r.a));
  ok(cudaMemcpyAsync(r.y, r.pinned, kBytes, kHostToDevice, r.a));
  ok(cudaStreamSynchronize(r.a));
  CHECK(r.y[3] == 0.0f);
  check_no_reports();
}

TEST_CASE(
    "emulation: no host memory for what the checker keeps is a code, and leaves nothing behind") {
  const Fresh fresh;
  std::size_t before = 0, after = 0, total = 0;
  void *p = nullptr, *q = &p;
  ok(cudaMalloc(&p, 16));
  ok(cudaMemGetInfo(&before, &total));
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_AS, &old) == 0);
  rlimit tight = old;
  tight.rlim_cur = std::size_t{12} << 30;  // the block fits, but the cells for its bytes do not
  REQUIRE(setrlimit(RLIMIT_AS, &tight) == 0);
  const cudaError_t error = cudaMalloc(&q, std::size_t{1} << 30);
  REQUIRE(setrlimit(RLIMIT_AS, &old) == 0);
  CHECK(error == cudaErrorMemoryAllocation);
  CHECK(q == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  ok(cudaMemGetInfo(&after, &total));
  CHECK(after == before);
  ok(cudaFree(p));
  CHECK(simt::live_objects().empty());
}
