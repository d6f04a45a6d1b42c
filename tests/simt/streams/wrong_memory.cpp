// Programs that use freed, foreign or too short memory, and handles that were destroyed.
#include <utility>

#include "rig.hpp"

namespace braid::streams_test {

namespace {

constexpr cudaError_t kBadHandle = cudaErrorInvalidResourceHandle,
                      kBadValue = cudaErrorInvalidValue;
constexpr std::size_t kLarge = std::size_t{4} << 20;

}  // namespace

TEST_CASE("streams: programs that misuse memory and handles are reported, corrected are not") {
  using enum simt::ReportKind;
  check_program("freed while another stream reads", use_after_free, [](Rig& r, bool fixed) {
    float* const block = r.block_of_a();
    ok(cudaMemsetAsync(block, 1, kBytes, r.a));
    r.b_waits_for_a();
    here(cudaMemcpyAsync(r.y, block, kBytes, kDeviceToDevice, r.b));
    if (fixed) r.a_waits_for_b();
    here(cudaFreeAsync(block, r.a));
  });
  check_program("freed while a kernel reads", use_after_free, [](Rig& r, bool fixed) {
    float* const block = r.block_of_a();
    ok(simt::launch(fill, 1, kCount, 0, r.a, block, kCount, 3.0f));
    r.b_waits_for_a();
    here(simt::launch(copy_values, 1, kCount, 0, r.b, r.y, block, kCount));
    if (fixed) r.a_waits_for_b();
    ok(cudaFreeAsync(block, r.a));
  });
  check_program("freed on another stream", use_before_alloc, [](Rig& r, bool fixed) {
    float* const block = r.block_of_a();
    if (fixed) r.b_waits_for_a();
    here(cudaFreeAsync(block, r.b));
  });
  check_program("used after free", use_after_free, [](Rig& r, bool fixed) {
    float* gone = std::exchange(r.x, nullptr);
    if (!fixed) here(cudaFree(gone));
    here(cudaMemsetAsync(gone, 1, kBytes, r.a), fixed, kBadValue);
    if (fixed) ok(cudaFree(gone));
  });
  check_program("used after free on its stream", use_after_free, [](Rig& r, bool fixed) {
    float* const block = r.block_of_a();
    if (!fixed) here(cudaFreeAsync(block, r.a));
    here(cudaMemsetAsync(block, 1, kBytes, r.a));
    if (fixed) ok(cudaFreeAsync(block, r.a));
  });
  // cudaFree does not wait if the memory is from cudaMallocAsync.
  check_program("freed at once under a kernel", use_after_free, [](Rig& r, bool fixed) {
    float* const block = r.block_of_a();
    ok(cudaStreamSynchronize(r.a));
    here(simt::launch(fill, 1, kCount, 0, r.a, block, kCount, 3.0f));
    if (fixed) ok(cudaStreamSynchronize(r.a));
    here(cudaFree(block));
  });
  // cudaFreeAsync accepts memory of cudaMalloc too.
  check_program("malloc freed on a stream under a kernel", use_after_free, [](Rig& r, bool fixed) {
    here(simt::launch(fill, 1, kCount, 0, r.b, r.x, kCount, 3.0f));
    if (fixed) r.a_waits_for_b();
    ok(cudaFreeAsync(std::exchange(r.x, nullptr), r.a));
  });
  check_program("used before its allocation", use_before_alloc, [](Rig& r, bool fixed) {
    float* block = nullptr;
    here(cudaMallocAsync(&block, kBytes, r.a));
    if (fixed) r.b_waits_for_a();
    here(cudaMemsetAsync(block, 1, kBytes, r.b));
    r.a_waits_for_b();
    ok(cudaFreeAsync(block, r.a));
  });
  check_program("block given to another stream", use_after_free, [](Rig& r, bool fixed) {
    simt::annotate_freed(r.x, kBytes, r.a);
    simt::annotate_allocated(r.x, kBytes, r.a);
    ok(cudaMemsetAsync(r.x, 1, kBytes, r.a));
    simt::annotate_freed(r.x, kBytes, r.a), mark();
    if (fixed) r.b_waits_for_a();
    simt::annotate_allocated(r.x, kBytes, r.b), mark();
  });
  // The kernel accesses memory far after the start of the block.
  check_program("block taken back under a kernel at its end", use_after_free,
                [](Rig& r, bool fixed) {
                  constexpr std::size_t kBlock = std::size_t{1} << 20;
                  float* segment = nullptr;
                  ok(cudaMalloc(&segment, 2 * kBlock));
                  simt::annotate_freed(segment, 2 * kBlock, r.a);
                  simt::annotate_allocated(segment, kBlock, r.a);
                  r.b_waits_for_a();
                  here(simt::launch(fill, 1, kCount, 0, r.b, segment + kBlock / sizeof(float) / 2,
                                    kCount, 1.0f));
                  if (fixed) r.a_waits_for_b();
                  simt::annotate_freed(segment, kBlock, r.a);
                  ok(cudaDeviceSynchronize());
                  ok(cudaFree(segment));
                });
  check_program("kernel uses a freed block", use_after_free, [](Rig& r, bool fixed) {
    simt::annotate_freed(r.x, kBytes, r.a);
    simt::annotate_allocated(r.x, kBytes, r.a);
    if (!fixed) simt::annotate_freed(r.x, kBytes, r.a);
    here(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 1.0f));
  });
  check_program("freed twice", double_free, [](Rig& r, bool fixed) {
    float* gone = std::exchange(r.x, nullptr);
    here(cudaFree(gone));
    if (!fixed) here(cudaFree(gone), fixed, kBadValue);
  });
  check_program("pinned freed too early", pinned_free, [](Rig& r, bool fixed) {
    here(cudaMemcpyAsync(r.x, r.pinned, kBytes, kHostToDevice, r.a));
    if (fixed) ok(cudaStreamSynchronize(r.a));
    here(cudaFreeHost(std::exchange(r.pinned, nullptr)));
  });
  check_program("copy over the end", out_of_bounds, [](Rig& r, bool fixed) {
    const std::size_t bytes = fixed ? kBytes : kBytes + 4;
    here(cudaMemcpyAsync(r.y, r.x, bytes, kDeviceToDevice, r.a), fixed, kBadValue);
  });
  check_program("large block used after free", use_after_free, [](Rig& r, bool fixed) {
    float* block = nullptr;
    ok(cudaMalloc(&block, kLarge));
    if (!fixed) here(cudaFree(block));
    here(cudaMemcpyAsync(block + kCount, r.pinned, kBytes, kDefault, r.a), fixed, kBadValue);
    if (fixed) ok(cudaFree(block));
  });
  check_program("large block freed twice", double_free, [](Rig&, bool fixed) {
    float* block = nullptr;
    ok(cudaMalloc(&block, kLarge));
    here(cudaFree(block));
    if (!fixed) here(cudaFree(block), fixed, kBadValue);
  });
  check_program("copy onto itself", overlap, [](Rig& r, bool fixed) {
    const int ahead = fixed ? kCount / 2 : 1;
    here(cudaMemcpyAsync(r.x + ahead, r.x, kBytes / 2, kDeviceToDevice, r.a), fixed, kBadValue);
  });
  check_program("copy over the end of a block", out_of_bounds, [](Rig& r, bool fixed) {
    simt::annotate_freed(r.x, kBytes, r.a);
    simt::annotate_allocated(r.x, kBytes / 2, r.a);
    simt::annotate_allocated(r.x + kCount / 2, kBytes / 2, r.a);
    here(cudaMemsetAsync(r.x, 0, fixed ? kBytes / 2 : kBytes / 2 + 4, r.a));
  });
  check_program("kernel over the end", kernel, [](Rig& r, bool fixed) {
    here(simt::launch(write_past_end, 1, kCount + 32, 0, r.a, r.x, fixed ? kCount - 1 : kCount));
  });
  check_program("wrong direction", wrong_kind, [](Rig& r, bool fixed) {
    float own[kCount] = {};
    const cudaMemcpyKind kind = fixed ? kHostToDevice : kDeviceToDevice;
    here(cudaMemcpyAsync(r.x, own, kBytes, kind, r.a), fixed, kBadValue);
  });
  check_program("launch on a stream of another device", wrong_device, [](Rig& r, bool fixed) {
    cudaStream_t there{};
    ok(cudaSetDevice(fixed ? 0 : 1));
    here(cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking));
    ok(cudaSetDevice(0));
    here(simt::launch(fill, 1, kCount, 0, there, r.x, kCount, 1.0f), fixed, kBadHandle);
    ok(cudaStreamSynchronize(there));
    ok(cudaStreamDestroy(there));
  });
  check_program("event of another device", wrong_device, [](Rig& r, bool fixed) {
    cudaEvent_t event{};
    ok(cudaSetDevice(fixed ? 0 : 1));
    here(cudaEventCreate(&event));
    ok(cudaSetDevice(0));
    here(cudaEventRecord(event, r.a), fixed, kBadHandle);
    ok(cudaEventDestroy(event));
  });
  check_program("copy without peer access", wrong_device, [](Rig& r, bool fixed) {
    float* there = nullptr;
    ok(cudaSetDevice(1));
    here(cudaMalloc(&there, kBytes));
    ok(cudaSetDevice(0));
    constexpr cudaError_t kRefused = cudaErrorPeerAccessNotEnabled;
    if (fixed) ok(cudaMemcpyPeerAsync(there, 1, r.x, 0, kBytes, r.a));
    else here(cudaMemcpyAsync(there, r.x, kBytes, kDeviceToDevice, r.a), fixed, kRefused);
    ok(cudaStreamSynchronize(r.a));
    ok(cudaFree(there));
  });
  check_program("kernel without peer access", wrong_device, [](Rig& r, bool fixed) {
    float* there = nullptr;
    ok(cudaSetDevice(1));
    ok(cudaMalloc(&there, kBytes));
    ok(cudaSetDevice(0));
    if (fixed) ok(cudaDeviceEnablePeerAccess(1, 0));
    here(simt::launch(fill, 1, kCount, 0, r.a, there, kCount, 1.0f));
    ok(cudaStreamSynchronize(r.a));
    if (fixed) ok(cudaDeviceDisablePeerAccess(1));
    ok(cudaFree(there));
  });
  check_program("destroyed stream", destroyed_handle, [](Rig& r, bool fixed) {
    const cudaStream_t gone = std::exchange(r.a, nullptr);
    if (!fixed) here(cudaStreamDestroy(gone));
    here(cudaMemsetAsync(r.x, 1, kBytes, gone), fixed, kBadHandle);
    if (fixed) ok(cudaStreamDestroy(gone));
  });
  check_program("destroyed event", destroyed_handle, [](Rig& r, bool fixed) {
    cudaEvent_t gone{};
    ok(cudaEventCreate(&gone));
    ok(cudaEventRecord(gone, r.a));
    if (!fixed) here(cudaEventDestroy(gone));
    here(cudaStreamWaitEvent(r.b, gone), fixed, kBadHandle);
    if (fixed) ok(cudaEventDestroy(gone));
  });
}

}  // namespace braid::streams_test
