#include <braid/core/error.hpp>
#include <string>
#include <thread>

#include "rig.hpp"

using namespace braid;
using namespace braid::streams_test;

TEST_CASE("twin: devices, properties and versions") {
  const Fresh fresh;
  int count = 0, device = -1, value = 0;
  ok(cudaGetDeviceCount(&count));
  CHECK(count == 2);
  ok(cudaGetDevice(&device));
  CHECK(device == 0);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaGetDevice(nullptr) == cudaErrorInvalidValue);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  cudaDeviceProp p{};
  ok(cudaGetDeviceProperties(&p, 1));
  CHECK(p.warpSize == 32);
  CHECK(p.major == 8);
  CHECK(p.maxThreadsPerBlock == 1024);
  ok(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  CHECK(value == p.major);
  ok(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  CHECK(static_cast<std::size_t>(value) == p.sharedMemPerBlockOptin);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 7) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(99999), 0) ==
        cudaErrorInvalidValue);
  ok(cudaRuntimeGetVersion(&value));
  CHECK(value >= 12040);
  int driver = 0;
  ok(cudaDriverGetVersion(&driver));
  CHECK(driver >= value);
  char id[16] = {};
  ok(cudaDeviceGetPCIBusId(id, sizeof id, 1));
  CHECK(std::string(id) == "0000:02:00.0");
  CHECK(std::string(cudaGetErrorName(cudaErrorMemoryAllocation)) == "cudaErrorMemoryAllocation");
  CHECK(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
  CHECK(std::string(cudaGetErrorName(static_cast<cudaError_t>(4242))) == "unrecognized error code");
}

TEST_CASE("twin: the current device and the last error belong to the thread") {
  const Fresh fresh;
  ok(cudaSetDevice(1));
  CHECK(cudaSetDevice(9) == cudaErrorInvalidDevice);
  int seen = -1;
  cudaError_t error = cudaErrorUnknown;
  std::thread([&] {
    (void)cudaGetDevice(&seen);
    error = cudaGetLastError();
  }).join();
  CHECK(seen == 0);
  CHECK(error == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
}

TEST_CASE("twin: the number of devices and their memory can be set while nothing is alive") {
  const Fresh fresh;
  simt::set_devices(3, std::size_t{1} << 20);
  int count = 0;
  ok(cudaGetDeviceCount(&count));
  CHECK(count == 3);
  ok(cudaSetDevice(2));
  std::size_t room = 0, total = 0;
  ok(cudaMemGetInfo(&room, &total));
  CHECK(room == std::size_t{1} << 20);
  CHECK(total == room);
  void* p = nullptr;
  ok(cudaMalloc(&p, 100));
  CHECK_THROWS_AS(simt::set_devices(2, 1), ArgumentError);
  ok(cudaMemGetInfo(&room, &total));
  CHECK(room == total - 512);  // as on a GPU, in pages of 512 bytes
  ok(cudaFree(p));
  simt::set_devices(0, 0);
  CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
  CHECK(count == 0);
  // Without a device every call returns an error, and none crashes.
  cudaStream_t stream{};
  cudaEvent_t event{};
  cudaMemPool_t pool{};
  cudaDeviceProp properties{};
  CHECK(cudaGetLastError() == cudaErrorNoDevice);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(cudaSetDevice(0) == cudaErrorNoDevice);
  CHECK(cudaGetDevice(&count) == cudaErrorNoDevice);
  CHECK(cudaMalloc(&p, 100) == cudaErrorNoDevice);
  CHECK(cudaMallocHost(&p, 100) == cudaErrorNoDevice);
  CHECK(cudaFree(nullptr) == cudaErrorNoDevice);
  CHECK(cudaStreamCreate(&stream) == cudaErrorNoDevice);
  CHECK(cudaStreamSynchronize(nullptr) == cudaErrorNoDevice);
  CHECK(cudaEventCreate(&event) == cudaErrorNoDevice);
  CHECK(cudaEventDestroy(event) == cudaErrorNoDevice);
  CHECK(cudaDeviceSynchronize() == cudaErrorNoDevice);
  CHECK(cudaDeviceReset() == cudaErrorNoDevice);
  CHECK(cudaMemcpy(&room, &total, sizeof room, cudaMemcpyHostToHost) == cudaErrorNoDevice);
  CHECK(cudaMemGetInfo(&room, &total) == cudaErrorNoDevice);
  CHECK(cudaGetDeviceProperties(&properties, 0) == cudaErrorNoDevice);
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaErrorNoDevice);
  CHECK(simt::launch(fill, 1, 32, 0, nullptr, nullptr, 0, 0.0f) == cudaErrorNoDevice);
  ok(cudaRuntimeGetVersion(&count));
  CHECK(simt::host_read(&room, sizeof room));
  simt::annotate_allocated(&room, sizeof room, nullptr);
  CHECK(simt::live_objects().empty());
  check_no_reports();
  CHECK(cudaGetLastError() == cudaErrorNoDevice);
  CHECK_THROWS_AS(simt::set_devices(-1, 0), ArgumentError);
  simt::set_devices(2, std::size_t{8} << 30);
}

TEST_CASE("twin: peer access") {
  const Fresh fresh;
  int can = -1;
  ok(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 1);
  ok(cudaDeviceCanAccessPeer(&can, 1, 1));
  CHECK(can == 0);
  ok(cudaDeviceEnablePeerAccess(1, 0));
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorInvalidDevice);
  ok(cudaDeviceDisablePeerAccess(1));
  CHECK(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
  simt::set_peer_access_supported(false);
  ok(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 0);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessUnsupported);
  simt::set_peer_access_supported(true);
}

TEST_CASE("twin: functions") {
  const Fresh fresh;
  cudaFuncAttributes attributes{};
  ok(cudaFuncGetAttributes(&attributes, fill));
  CHECK(attributes.maxThreadsPerBlock == 1024);
  ok(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  ok(cudaFuncGetAttributes(&attributes, fill));
  CHECK(attributes.maxDynamicSharedSizeBytes == 100 << 10);
  CHECK(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20) ==
        cudaErrorInvalidValue);
  int blocks = 0;
  ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0));
  CHECK(blocks == 8);
}

TEST_CASE("twin: launches that CUDA refuses, and the log of the others") {
  const Fresh fresh;
  Rig r;
  simt::clear_launch_log();
  CHECK(simt::launch(fill, 1, 2048, 0, r.a, r.x, kCount, 1.0f) == cudaErrorInvalidConfiguration);
  CHECK(simt::launch(fill, 0, 32, 0, r.a, r.x, kCount, 1.0f) == cudaErrorInvalidConfiguration);
  CHECK(simt::launch(fill, 1, 32, 1 << 20, r.a, r.x, kCount, 1.0f) ==
        cudaErrorInvalidConfiguration);
  CHECK(simt::launch_log().empty());
  ok(simt::launch(fill, 2, 128, 0, r.a, r.x, kCount, 1.0f));
  const auto log = simt::launch_log();
  REQUIRE(log.size() == 1);
  CHECK(log[0].kernel == "braid::streams_test::fill");
  CHECK(log[0].device == 0);
  CHECK(log[0].grid.x == 2);
  CHECK(log[0].block.x == 128);
  ok(cudaMemcpyAsync(r.pinned, r.x, kBytes, kDeviceToHost, r.a));
  ok(cudaStreamSynchronize(r.a));
  CHECK(r.pinned[kCount - 1] == 1.0f);
  check_no_reports();
}

TEST_CASE("twin: a finding in a kernel ends its device with the code of a GPU") {
  const Fresh fresh(simt::ReportMode::sticky);
  Rig r;
  ok(simt::launch(write_past_end, 1, kCount + 32, 0, r.a, r.x, kCount));
  CHECK(cudaStreamSynchronize(r.a) == cudaErrorIllegalAddress);
  CHECK(simt::last_report().find("write_past_end") != std::string::npos);
  CHECK(simt::last_report().find("kernels.cu") != std::string::npos);
  CHECK(cudaStreamSynchronize(r.b) == cudaErrorIllegalAddress);
}
