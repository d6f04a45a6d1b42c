#include <algorithm>

#include "rig.hpp"

namespace braid::streams_test {
namespace {

std::vector<int>& marked() {
  static std::vector<int> lines;
  return lines;
}

}  // namespace

void mark(int line) { marked().push_back(line); }

void check_program(const char* name, simt::ReportKind kind, Program program,
                   const std::string& file) {
  INFO(name);
  const std::string base = file.substr(file.rfind('/') + 1);
  in_every_order([&] {
    marked().clear();
    {
      Rig r;
      program(r, false);
    }
    const std::vector<simt::Report> wrong = simt::take_reports();
    INFO("reports:\n" << all_texts(wrong));
    REQUIRE_FALSE(marked().empty());
    const auto names = [&](const simt::Report& report) {
      return std::all_of(marked().begin(), marked().end(), [&](int line) {
        return report.text.find(base + ":" + std::to_string(line)) != std::string::npos;
      });
    };
    CHECK(std::any_of(wrong.begin(), wrong.end(), [&](const simt::Report& report) {
      return report.kind == kind && names(report);
    }));
    for (const simt::Report& report : wrong)
      CHECK((report.file == base || report.file == "rig.hpp"));
  });
  check_right("corrected", [&](Rig& r) { program(r, true); });
}

}  // namespace braid::streams_test

using namespace braid;
using namespace braid::streams_test;

TEST_CASE("streams: a report ends the device by default") {
  const Fresh fresh(simt::ReportMode::sticky);
  Rig r;
  ok(cudaMemsetAsync(r.x, 1, kBytes, r.a));
  ok(cudaMemcpyAsync(r.y, r.x, kBytes, cudaMemcpyDeviceToDevice, r.b));
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  CHECK(std::string(cudaGetErrorString(cudaErrorLaunchFailure)) == "unspecified launch failure");
  CHECK(simt::last_report().find("race") != std::string::npos);
  // The error stays, for every call of that device and of no other device.
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  void* p = nullptr;
  CHECK(cudaMalloc(&p, 16) == cudaErrorLaunchFailure);
  CHECK(cudaMemsetAsync(r.x, 0, kBytes, r.a) == cudaErrorLaunchFailure);
  CHECK(simt::launch(fill, 1, 1, 0, r.a, r.x, 1, 0.0f) == cudaErrorLaunchFailure);
  CHECK(cudaEventQuery(r.event) == cudaErrorLaunchFailure);
  ok(cudaSetDevice(1));
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);  // the thread's own error, once
  CHECK(cudaGetLastError() == cudaSuccess);
  ok(cudaMalloc(&p, 16));
  ok(cudaFree(p));
  ok(cudaSetDevice(0));
  ok(cudaDeviceReset());
  ok(cudaMalloc(&p, 16));
  ok(cudaFree(p));
  r.x = r.y = nullptr;
  r.pinned = nullptr;
  r.a = r.b = nullptr;
}

// Programs that lack an order between two streams, or between a stream and the host.
TEST_CASE("streams: programs without an order are reported, corrected are not") {
  using enum simt::ReportKind;
  check_program("dropped wait", race, [](Rig& r, bool fixed) {
    here(cudaMemsetAsync(r.x, 1, kBytes, r.a));
    if (fixed) r.b_waits_for_a();
    here(cudaMemcpyAsync(r.y, r.x, kBytes, kDeviceToDevice, r.b));
  });
  check_program("dropped wait between kernels", race, [](Rig& r, bool fixed) {
    here(simt::launch(fill, 1, kCount, 0, r.a, r.x, kCount, 3.0f));
    if (fixed) r.b_waits_for_a();
    here(simt::launch(copy_values, 1, kCount, 0, r.b, r.y, r.x, kCount));
  });
  check_program("kernel before its copy", race, [](Rig& r, bool fixed) {
    here(cudaMemcpyAsync(r.x, r.pinned, kBytes, kHostToDevice, r.a));
    if (fixed) r.b_waits_for_a();
    here(simt::launch(copy_values, 1, kCount, 0, r.b, r.y, r.x, kCount));
  });
  check_program("write over a reader", race, [](Rig& r, bool fixed) {
    here(simt::launch(copy_values, 1, kCount, 0, r.a, r.y, r.x, kCount));
    if (fixed) r.b_waits_for_a();
    here(cudaMemsetAsync(r.x, 7, kBytes, r.b));
  });
  // The wait uses what the event holds at the time of the call: nothing yet.
  check_program("event recorded after the wait", race, [](Rig& r, bool fixed) {
    here(cudaMemsetAsync(r.x, 1, kBytes, r.a));
    if (fixed) ok(cudaEventRecord(r.event, r.a));
    ok(cudaStreamWaitEvent(r.b, r.event));
    if (!fixed) ok(cudaEventRecord(r.event, r.a));
    here(cudaMemcpyAsync(r.y, r.x, kBytes, kDeviceToDevice, r.b));
  });
  // The event still holds its first record, which precedes the work.
  check_program("event of an older record", race, [](Rig& r, bool fixed) {
    ok(cudaEventRecord(r.event, r.a));
    here(cudaMemsetAsync(r.x, 1, kBytes, r.a));
    if (fixed) ok(cudaEventRecord(r.event, r.a));
    ok(cudaStreamWaitEvent(r.b, r.event));
    here(cudaMemcpyAsync(r.y, r.x, kBytes, kDeviceToDevice, r.b));
    if (!fixed) ok(cudaEventRecord(r.event, r.a));
  });
  check_program("waited for the wrong stream", race, [](Rig& r, bool fixed) {
    here(cudaMemsetAsync(r.x, 1, kBytes, r.a));
    ok(cudaStreamSynchronize(fixed ? r.a : r.b));
    here(cudaMemcpyAsync(r.y, r.x, kBytes, kDeviceToDevice, r.b));
  });
  // A non-blocking stream does not wait for the default stream.
  check_program("default stream and non-blocking", race, [](Rig& r, bool fixed) {
    here(cudaMemset(r.x, 1, kBytes));
    if (fixed) ok(cudaStreamSynchronize(nullptr));
    here(cudaMemcpyAsync(r.y, r.x, kBytes, kDeviceToDevice, r.a));
  });
  // cudaMemcpy of pageable memory returns when the bytes are staged, not when they have arrived.
  check_program("staged copy and non-blocking", race, [](Rig& r, bool fixed) {
    const std::vector<float> values(kCount, 2.0f);
    here(cudaMemcpy(r.x, values.data(), kBytes, kHostToDevice));
    if (fixed) ok(cudaDeviceSynchronize());
    here(simt::launch(copy_values, 1, kCount, 0, r.a, r.y, r.x, kCount));
  });
  check_program("result read before it is there", early_read, [](Rig& r, bool fixed) {
    here(cudaMemcpyAsync(r.pinned, r.x, kBytes, kDeviceToHost, r.a));
    if (fixed) ok(cudaStreamSynchronize(r.a));
    const bool there = (mark(), simt::host_read(r.pinned, kBytes));
    CHECK(there == fixed);
  });
  check_program("pinned source reused", pinned_reuse, [](Rig& r, bool fixed) {
    here(cudaMemcpyAsync(r.x, r.pinned, kBytes, kHostToDevice, r.a));
    if (fixed) ok(cudaStreamSynchronize(r.a));
    r.pinned[5] = -1.0f;  // the next batch
  });
  check_program("pinned source reused after the copy ran", pinned_reuse, [](Rig& r, bool fixed) {
    here(cudaMemcpyAsync(r.x, r.pinned, kBytes, kHostToDevice, r.a));
    (void)simt::reports();  // the executor has run it, but the program does not know
    if (fixed) ok(cudaStreamSynchronize(r.a));
    r.pinned[5] = -1.0f;
  });
  // A pending kernel does not hide the mistake if it does not use the memory.
  check_program("pinned source reused behind a kernel", pinned_reuse, [](Rig& r, bool fixed) {
    ok(simt::launch(fill, 1, kCount, 0, r.a, r.y, kCount, 1.0f));
    here(cudaMemcpyAsync(r.x, r.pinned, kBytes, kHostToDevice, r.a));
    if (fixed) ok(cudaStreamSynchronize(r.a));
    r.pinned[5] = -1.0f;
  });
  check_program("pinned target written", pinned_reuse, [](Rig& r, bool fixed) {
    here(cudaMemcpyAsync(r.pinned, r.x, kBytes, kDeviceToHost, r.a));
    if (fixed) ok(cudaStreamSynchronize(r.a));
    r.pinned[0] = 1.0f;
  });
}
