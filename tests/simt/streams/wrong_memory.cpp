#include <utility>

#include "rig.hpp"
#include "wrong_programs.hpp"

// Programs that use memory which is freed, not theirs, or too short, and handles that are gone.
namespace braid::streams_test {
namespace {

Fault freed_while_another_stream_reads(bool fixed) {
  Rig r;
  Fault at{};
  float* block = nullptr;
  ok(cudaMallocAsync(&block, kBytes, r.a));
  ok(cudaMemsetAsync(block, 1, kBytes, r.a));
  r.b_waits_for_a();
  ok(cudaMemcpyAsync(r.y, block, kBytes, cudaMemcpyDeviceToDevice, r.b)), at.line = __LINE__;
  if (fixed) {
    ok(cudaEventRecord(r.event, r.b));
    ok(cudaStreamWaitEvent(r.a, r.event));
  }
  ok(cudaFreeAsync(block, r.a)), at.other = __LINE__;
  return at;
}

Fault freed_while_a_kernel_reads(bool fixed) {
  Rig r;
  Fault at{};
  float* block = nullptr;
  ok(cudaMallocAsync(&block, kBytes, r.a));
  ok(simt::launch(fill, 1, kCount, 0, r.a, block, kCount, 3.0f));
  r.b_waits_for_a();
  ok(simt::launch(copy_values, 1, kCount, 0, r.b, r.y, block, kCount)), at.line = __LINE__;
  if (fixed) {
    ok(cudaEventRecord(r.event, r.b));
    ok(cudaStreamWaitEvent(r.a, r.event));
  }
  ok(cudaFreeAsync(block, r.a));
  return at;
}

Fault freed_on_another_stream(bool fixed) {
  Rig r;
  Fault at{};
  float* block = nullptr;
  ok(cudaMallocAsync(&block, kBytes, r.a));
  if (fixed) r.b_waits_for_a();
  ok(cudaFreeAsync(block, r.b)), at.line = __LINE__;
  return at;
}

Fault used_after_free(bool fixed) {
  Rig r;
  Fault at{};
  float* gone = std::exchange(r.x, nullptr);
  if (!fixed) ok(cudaFree(gone)), at.other = __LINE__;
  at.line = __LINE__ + 1;
  expect(cudaMemsetAsync(gone, 1, kBytes, r.a), fixed ? cudaSuccess : cudaErrorInvalidValue);
  if (fixed) ok(cudaFree(gone));
  return at;
}

Fault used_after_free_on_its_stream(bool fixed) {
  Rig r;
  Fault at{};
  float* block = nullptr;
  ok(cudaMallocAsync(&block, kBytes, r.a));
  if (!fixed) ok(cudaFreeAsync(block, r.a)), at.other = __LINE__;
  ok(cudaMemsetAsync(block, 1, kBytes, r.a)), at.line = __LINE__;
  if (fixed) ok(cudaFreeAsync(block, r.a));
  return at;
}

// cudaFree waits for nothing where the memory is cudaMallocAsync's.
Fault freed_at_once_under_a_kernel(bool fixed) {
  Rig r;
  Fault at{};
  float* block = nullptr;
  ok(cudaMallocAsync(&block, kBytes, r.a));
  ok(cudaStreamSynchronize(r.a));
  ok(simt::launch(fill, 1, kCount, 0, r.a, block, kCount, 3.0f)), at.line = __LINE__;
  if (fixed) ok(cudaStreamSynchronize(r.a));
  ok(cudaFree(block)), at.other = __LINE__;
  return at;
}

// cudaFreeAsync takes memory of cudaMalloc too.
Fault malloc_freed_on_a_stream_under_a_kernel(bool fixed) {
  Rig r;
  Fault at{};
  ok(simt::launch(fill, 1, kCount, 0, r.b, r.x, kCount, 3.0f)), at.line = __LINE__;
  if (fixed) {
    ok(cudaEventRecord(r.event, r.b));
    ok(cudaStreamWaitEvent(r.a, r.event));
  }
  ok(cudaFreeAsync(std::exchange(r.x, nullptr), r.a));
  return at;
}

Fault used_before_its_allocation(bool fixed) {
  Rig r;
  Fault at{};
  float* block = nullptr;
  ok(cudaMallocAsync(&block, kBytes, r.a)), at.other = __LINE__;
  if (fixed) r.b_waits_for_a();
  ok(cudaMemsetAsync(block, 1, kBytes, r.b)), at.line = __LINE__;
  ok(cudaEventRecord(r.event, r.b));
  ok(cudaStreamWaitEvent(r.a, r.event));
  ok(cudaFreeAsync(block, r.a));
  return at;
}

Fault block_given_to_another_stream(bool fixed) {
  Rig r;
  Fault at{};
  simt::annotate_freed(r.x, kBytes, r.a);
  simt::annotate_allocated(r.x, kBytes, r.a);
  ok(cudaMemsetAsync(r.x, 1, kBytes, r.a));
  simt::annotate_freed(r.x, kBytes, r.a), at.other = __LINE__;
  if (fixed) r.b_waits_for_a();
  simt::annotate_allocated(r.x, kBytes, r.b), at.line = __LINE__;
  return at;
}

// The kernel works far behind the begin of the block.
Fault block_taken_back_under_a_kernel_at_its_end(bool fixed) {
  Rig r;
  Fault at{};
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  float* segment = nullptr;
  ok(cudaMalloc(&segment, 2 * kBlock));
  simt::annotate_freed(segment, 2 * kBlock, r.a);
  simt::annotate_allocated(segment, kBlock, r.a);
  r.b_waits_for_a();
  at.line = __LINE__ + 1;
  ok(simt::launch(fill, 1, kCount, 0, r.b, segment + kBlock / sizeof(float) / 2, kCount, 1.0f));
  if (fixed) {
    ok(cudaEventRecord(r.event, r.b));
    ok(cudaStreamWaitEvent(r.a, r.event));
  }
  simt::annotate_freed(segment, kBlock, r.a);
  ok(cudaDeviceSynchronize());
  ok(cudaFree(segment));
  return at;
}

Fault kernel_uses_a_freed_block(bool fixed) {
  Rig r;
  Fault at{};
  simt::annotate_freed(r.x, kBytes, r.a);
  simt::annotate_allocated(r.x, kBytes, r.a);
  if (!fixed) simt::annotate_freed(r.x, kBytes, r.a);
  ok(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 1.0f)), at.line = __LINE__;
  return at;
}

Fault freed_twice(bool fixed) {
  Rig r;
  Fault at{};
  float* gone = std::exchange(r.x, nullptr);
  ok(cudaFree(gone)), at.other = __LINE__;
  if (!fixed) expect(cudaFree(gone), cudaErrorInvalidValue), at.line = __LINE__;
  return at;
}

Fault pinned_freed_too_early(bool fixed) {
  Rig r;
  Fault at{};
  ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, cudaMemcpyHostToDevice, r.a)), at.other = __LINE__;
  if (fixed) ok(cudaStreamSynchronize(r.a));
  ok(cudaFreeHost(std::exchange(r.pinned, nullptr))), at.line = __LINE__;
  return at;
}

Fault copy_over_the_end(bool fixed) {
  Rig r;
  Fault at{};
  const std::size_t bytes = fixed ? kBytes : kBytes + 4;
  at.line = __LINE__ + 1;
  expect(cudaMemcpyAsync(r.y, r.x, bytes, cudaMemcpyDeviceToDevice, r.a),
         fixed ? cudaSuccess : cudaErrorInvalidValue);
  return at;
}

// Large blocks are not kept when they are freed, but their addresses are.
constexpr std::size_t kLarge = std::size_t{4} << 20;

Fault large_block_used_after_free(bool fixed) {
  Rig r;
  Fault at{};
  float* block = nullptr;
  ok(cudaMalloc(&block, kLarge));
  if (!fixed) ok(cudaFree(block)), at.other = __LINE__;
  at.line = __LINE__ + 1;
  expect(cudaMemcpyAsync(block + kCount, r.pinned, kBytes, cudaMemcpyDefault, r.a),
         fixed ? cudaSuccess : cudaErrorInvalidValue);
  if (fixed) ok(cudaFree(block));
  return at;
}

Fault large_block_freed_twice(bool fixed) {
  Fault at{};
  float* block = nullptr;
  ok(cudaMalloc(&block, kLarge));
  ok(cudaFree(block)), at.other = __LINE__;
  if (!fixed) expect(cudaFree(block), cudaErrorInvalidValue), at.line = __LINE__;
  return at;
}

Fault copy_onto_itself(bool fixed) {
  Rig r;
  Fault at{};
  const int ahead = fixed ? kCount / 2 : 1;
  at.line = __LINE__ + 1;
  expect(cudaMemcpyAsync(r.x + ahead, r.x, kBytes / 2, cudaMemcpyDeviceToDevice, r.a),
         fixed ? cudaSuccess : cudaErrorInvalidValue);
  return at;
}

Fault copy_over_the_end_of_a_block(bool fixed) {
  Rig r;
  Fault at{};
  simt::annotate_freed(r.x, kBytes, r.a);
  simt::annotate_allocated(r.x, kBytes / 2, r.a);
  simt::annotate_allocated(r.x + kCount / 2, kBytes / 2, r.a);
  ok(cudaMemsetAsync(r.x, 0, fixed ? kBytes / 2 : kBytes / 2 + 4, r.a)), at.line = __LINE__;
  return at;
}

Fault kernel_over_the_end(bool fixed) {
  Rig r;
  Fault at{};
  at.line = __LINE__ + 1;
  ok(simt::launch(write_past_end, 1, kCount + 32, 0, r.a, r.x, fixed ? kCount - 1 : kCount));
  return at;
}

Fault wrong_direction(bool fixed) {
  Rig r;
  Fault at{};
  float here[kCount] = {};
  const cudaMemcpyKind kind = fixed ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
  at.line = __LINE__ + 1;
  expect(cudaMemcpyAsync(r.x, here, kBytes, kind, r.a),
         fixed ? cudaSuccess : cudaErrorInvalidValue);
  return at;
}

Fault launch_on_a_stream_of_another_device(bool fixed) {
  Rig r;
  Fault at{};
  cudaStream_t there{};
  ok(cudaSetDevice(fixed ? 0 : 1));
  ok(cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking)), at.other = __LINE__;
  ok(cudaSetDevice(0));
  at.line = __LINE__ + 1;
  expect(simt::launch(fill, 1, kCount, 0, there, r.x, kCount, 1.0f),
         fixed ? cudaSuccess : cudaErrorInvalidResourceHandle);
  ok(cudaStreamSynchronize(there));
  ok(cudaStreamDestroy(there));
  return at;
}

Fault event_of_another_device(bool fixed) {
  Rig r;
  Fault at{};
  cudaEvent_t event{};
  ok(cudaSetDevice(fixed ? 0 : 1));
  ok(cudaEventCreate(&event)), at.other = __LINE__;
  ok(cudaSetDevice(0));
  at.line = __LINE__ + 1;
  expect(cudaEventRecord(event, r.a), fixed ? cudaSuccess : cudaErrorInvalidResourceHandle);
  ok(cudaEventDestroy(event));
  return at;
}

Fault copy_without_peer_access(bool fixed) {
  Rig r;
  Fault at{};
  float* there = nullptr;
  ok(cudaSetDevice(1));
  ok(cudaMalloc(&there, kBytes)), at.other = __LINE__;
  ok(cudaSetDevice(0));
  if (fixed) ok(cudaMemcpyPeerAsync(there, 1, r.x, 0, kBytes, r.a));
  else {
    at.line = __LINE__ + 1;
    expect(cudaMemcpyAsync(there, r.x, kBytes, cudaMemcpyDeviceToDevice, r.a),
           cudaErrorPeerAccessNotEnabled);
  }
  ok(cudaStreamSynchronize(r.a));
  ok(cudaFree(there));
  return at;
}

Fault kernel_without_peer_access(bool fixed) {
  Rig r;
  Fault at{};
  float* there = nullptr;
  ok(cudaSetDevice(1));
  ok(cudaMalloc(&there, kBytes));
  ok(cudaSetDevice(0));
  if (fixed) ok(cudaDeviceEnablePeerAccess(1, 0));
  ok(simt::launch(fill, 1, kCount, 0, r.a, there, kCount, 1.0f)), at.line = __LINE__;
  ok(cudaStreamSynchronize(r.a));
  if (fixed) ok(cudaDeviceDisablePeerAccess(1));
  ok(cudaFree(there));
  return at;
}

Fault destroyed_stream(bool fixed) {
  Rig r;
  Fault at{};
  const cudaStream_t gone = std::exchange(r.a, nullptr);
  if (!fixed) ok(cudaStreamDestroy(gone)), at.other = __LINE__;
  at.line = __LINE__ + 1;
  expect(cudaMemsetAsync(r.x, 1, kBytes, gone),
         fixed ? cudaSuccess : cudaErrorInvalidResourceHandle);
  if (fixed) ok(cudaStreamDestroy(gone));
  return at;
}

Fault destroyed_event(bool fixed) {
  Rig r;
  Fault at{};
  cudaEvent_t gone{};
  ok(cudaEventCreate(&gone));
  ok(cudaEventRecord(gone, r.a));
  if (!fixed) ok(cudaEventDestroy(gone)), at.other = __LINE__;
  at.line = __LINE__ + 1;
  expect(cudaStreamWaitEvent(r.b, gone), fixed ? cudaSuccess : cudaErrorInvalidResourceHandle);
  if (fixed) ok(cudaEventDestroy(gone));
  return at;
}

}  // namespace

std::vector<Program> memory_programs() {
  using simt::ReportKind;
  return {
      {"freed while another stream reads", ReportKind::use_after_free, __FILE__,
       freed_while_another_stream_reads},
      {"freed while a kernel reads", ReportKind::use_after_free, __FILE__,
       freed_while_a_kernel_reads},
      {"freed on another stream", ReportKind::use_before_alloc, __FILE__, freed_on_another_stream},
      {"used after free", ReportKind::use_after_free, __FILE__, used_after_free},
      {"used after free on its stream", ReportKind::use_after_free, __FILE__,
       used_after_free_on_its_stream},
      {"freed at once under a kernel", ReportKind::use_after_free, __FILE__,
       freed_at_once_under_a_kernel},
      {"malloc freed on a stream under a kernel", ReportKind::use_after_free, __FILE__,
       malloc_freed_on_a_stream_under_a_kernel},
      {"used before its allocation", ReportKind::use_before_alloc, __FILE__,
       used_before_its_allocation},
      {"block given to another stream", ReportKind::use_after_free, __FILE__,
       block_given_to_another_stream},
      {"block taken back under a kernel at its end", ReportKind::use_after_free, __FILE__,
       block_taken_back_under_a_kernel_at_its_end},
      {"kernel uses a freed block", ReportKind::use_after_free, __FILE__,
       kernel_uses_a_freed_block},
      {"freed twice", ReportKind::double_free, __FILE__, freed_twice},
      {"pinned freed too early", ReportKind::pinned_free, __FILE__, pinned_freed_too_early},
      {"copy over the end", ReportKind::out_of_bounds, __FILE__, copy_over_the_end},
      {"large block used after free", ReportKind::use_after_free, __FILE__,
       large_block_used_after_free},
      {"large block freed twice", ReportKind::double_free, __FILE__, large_block_freed_twice},
      {"copy onto itself", ReportKind::overlap, __FILE__, copy_onto_itself},
      {"copy over the end of a block", ReportKind::out_of_bounds, __FILE__,
       copy_over_the_end_of_a_block},
      {"kernel over the end", ReportKind::kernel, __FILE__, kernel_over_the_end},
      {"wrong direction", ReportKind::wrong_kind, __FILE__, wrong_direction},
      {"launch on a stream of another device", ReportKind::wrong_device, __FILE__,
       launch_on_a_stream_of_another_device},
      {"event of another device", ReportKind::wrong_device, __FILE__, event_of_another_device},
      {"copy without peer access", ReportKind::wrong_device, __FILE__, copy_without_peer_access},
      {"kernel without peer access", ReportKind::wrong_device, __FILE__,
       kernel_without_peer_access},
      {"destroyed stream", ReportKind::destroyed_handle, __FILE__, destroyed_stream},
      {"destroyed event", ReportKind::destroyed_handle, __FILE__, destroyed_event},
  };
}

}  // namespace braid::streams_test
