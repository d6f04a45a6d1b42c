#include "rig.hpp"
#include "wrong_programs.hpp"

// Programs that leave out an order between streams, or between a stream and the host. The line of
// each call at fault is kept on the line itself.
namespace braid::streams_test {
namespace {

Fault dropped_wait(bool fixed) {
  Rig r;
  Fault at{};
  ok(cudaMemsetAsync(r.x, 1, kBytes, r.a)), at.line = __LINE__;
  if (fixed) r.b_waits_for_a();
  ok(cudaMemcpyAsync(r.y, r.x, kBytes, cudaMemcpyDeviceToDevice, r.b)), at.other = __LINE__;
  return at;
}

Fault dropped_wait_between_kernels(bool fixed) {
  Rig r;
  Fault at{};
  ok(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 3.0f)), at.line = __LINE__;
  if (fixed) r.b_waits_for_a();
  ok(simt::launch(copy_values, 1, kCount, 0, r.b, r.y, r.x, kCount)), at.other = __LINE__;
  return at;
}

Fault kernel_before_its_copy(bool fixed) {
  Rig r;
  Fault at{};
  ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, cudaMemcpyHostToDevice, r.a)), at.line = __LINE__;
  if (fixed) r.b_waits_for_a();
  ok(simt::launch(copy_values, 1, kCount, 0, r.b, r.y, r.x, kCount)), at.other = __LINE__;
  return at;
}

Fault write_over_a_reader(bool fixed) {
  Rig r;
  Fault at{};
  ok(simt::launch(copy_values, 1, kCount, 0, r.a, r.y, r.x, kCount)), at.line = __LINE__;
  if (fixed) r.b_waits_for_a();
  ok(cudaMemsetAsync(r.x, 7, kBytes, r.b)), at.other = __LINE__;
  return at;
}

// The wait sees what the event holds when it is called: nothing yet.
Fault event_recorded_after_the_wait(bool fixed) {
  Rig r;
  Fault at{};
  ok(cudaMemsetAsync(r.x, 1, kBytes, r.a)), at.line = __LINE__;
  if (fixed) ok(cudaEventRecord(r.event, r.a));
  ok(cudaStreamWaitEvent(r.b, r.event));
  if (!fixed) ok(cudaEventRecord(r.event, r.a));
  ok(cudaMemcpyAsync(r.y, r.x, kBytes, cudaMemcpyDeviceToDevice, r.b)), at.other = __LINE__;
  return at;
}

// The event still holds its first record, from before the work.
Fault event_of_an_older_record(bool fixed) {
  Rig r;
  Fault at{};
  ok(cudaEventRecord(r.event, r.a));
  ok(cudaMemsetAsync(r.x, 1, kBytes, r.a)), at.line = __LINE__;
  if (fixed) ok(cudaEventRecord(r.event, r.a));
  ok(cudaStreamWaitEvent(r.b, r.event));
  ok(cudaMemcpyAsync(r.y, r.x, kBytes, cudaMemcpyDeviceToDevice, r.b)), at.other = __LINE__;
  if (!fixed) ok(cudaEventRecord(r.event, r.a));
  return at;
}

Fault waited_for_the_wrong_stream(bool fixed) {
  Rig r;
  Fault at{};
  ok(cudaMemsetAsync(r.x, 1, kBytes, r.a)), at.line = __LINE__;
  ok(cudaStreamSynchronize(fixed ? r.a : r.b));
  ok(cudaMemcpyAsync(r.y, r.x, kBytes, cudaMemcpyDeviceToDevice, r.b)), at.other = __LINE__;
  return at;
}

// A non-blocking stream does not wait for the default stream.
Fault default_stream_and_non_blocking(bool fixed) {
  Rig r;
  Fault at{};
  ok(cudaMemset(r.x, 1, kBytes)), at.line = __LINE__;
  if (fixed) ok(cudaStreamSynchronize(nullptr));
  ok(cudaMemcpyAsync(r.y, r.x, kBytes, cudaMemcpyDeviceToDevice, r.a)), at.other = __LINE__;
  return at;
}

// cudaMemcpy of pageable memory returns once the bytes are staged, not once they have arrived.
Fault staged_copy_and_non_blocking(bool fixed) {
  Rig r;
  Fault at{};
  const std::vector<float> values(kCount, 2.0f);
  ok(cudaMemcpy(r.x, values.data(), kBytes, cudaMemcpyHostToDevice)), at.line = __LINE__;
  if (fixed) ok(cudaDeviceSynchronize());
  ok(simt::launch(copy_values, 1, kCount, 0, r.a, r.y, r.x, kCount)), at.other = __LINE__;
  return at;
}

Fault result_read_before_it_is_there(bool fixed) {
  Rig r;
  Fault at{};
  ok(cudaMemcpyAsync(r.pinned, r.x, kBytes, cudaMemcpyDeviceToHost, r.a)), at.line = __LINE__;
  if (fixed) ok(cudaStreamSynchronize(r.a));
  const bool there = simt::host_read(r.pinned, kBytes);
  at.other = __LINE__ - 1;
  CHECK(there == fixed);
  return at;
}

Fault pinned_source_reused(bool fixed) {
  Rig r;
  Fault at{};
  ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, cudaMemcpyHostToDevice, r.a)), at.line = __LINE__;
  if (fixed) ok(cudaStreamSynchronize(r.a));
  r.pinned[5] = -1.0f;  // the next batch
  return at;
}

Fault pinned_source_reused_after_the_copy_ran(bool fixed) {
  Rig r;
  Fault at{};
  ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, cudaMemcpyHostToDevice, r.a)), at.line = __LINE__;
  (void)simt::reports();  // the executor has run it; the program does not know
  if (fixed) ok(cudaStreamSynchronize(r.a));
  r.pinned[5] = -1.0f;
  return at;
}

Fault pinned_target_written(bool fixed) {
  Rig r;
  Fault at{};
  ok(cudaMemcpyAsync(r.pinned, r.x, kBytes, cudaMemcpyDeviceToHost, r.a)), at.line = __LINE__;
  if (fixed) ok(cudaStreamSynchronize(r.a));
  r.pinned[0] = 1.0f;
  return at;
}

// A kernel that is still to run does not hide the mistake, as long as it has nothing to do with the
// memory.
Fault pinned_source_reused_behind_a_kernel(bool fixed) {
  Rig r;
  Fault at{};
  ok(simt::launch(fill, 1, kCount, 0, r.a, r.y, kCount, 1.0f));
  ok(cudaMemcpyAsync(r.x, r.pinned, kBytes, cudaMemcpyHostToDevice, r.a)), at.line = __LINE__;
  if (fixed) ok(cudaStreamSynchronize(r.a));
  r.pinned[5] = -1.0f;
  return at;
}

}  // namespace

std::vector<Program> ordering_programs() {
  using simt::ReportKind;
  return {
      {"dropped wait", ReportKind::race, __FILE__, dropped_wait},
      {"dropped wait between kernels", ReportKind::race, __FILE__, dropped_wait_between_kernels},
      {"kernel before its copy", ReportKind::race, __FILE__, kernel_before_its_copy},
      {"write over a reader", ReportKind::race, __FILE__, write_over_a_reader},
      {"event recorded after the wait", ReportKind::race, __FILE__, event_recorded_after_the_wait},
      {"event of an older record", ReportKind::race, __FILE__, event_of_an_older_record},
      {"waited for the wrong stream", ReportKind::race, __FILE__, waited_for_the_wrong_stream},
      {"default stream and non-blocking", ReportKind::race, __FILE__,
       default_stream_and_non_blocking},
      {"staged copy and non-blocking", ReportKind::race, __FILE__, staged_copy_and_non_blocking},
      {"result read before it is there", ReportKind::early_read, __FILE__,
       result_read_before_it_is_there},
      {"pinned source reused", ReportKind::pinned_reuse, __FILE__, pinned_source_reused},
      {"pinned source reused after the copy ran", ReportKind::pinned_reuse, __FILE__,
       pinned_source_reused_after_the_copy_ran},
      {"pinned source reused behind a kernel", ReportKind::pinned_reuse, __FILE__,
       pinned_source_reused_behind_a_kernel},
      {"pinned target written", ReportKind::pinned_reuse, __FILE__, pinned_target_written},
  };
}

}  // namespace braid::streams_test
