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
  check_right([&](Rig& r) { program(r, true); });
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
  // It stays, for every call of that device, and for no other device.
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  void* p = nullptr;
  CHECK(cudaMalloc(&p, 16) == cudaErrorLaunchFailure);
  CHECK(cudaMemsetAsync(r.x, 0, kBytes, r.a) == cudaErrorLaunchFailure);
  CHECK(simt::launch(fill, 1, 1, 0, r.a, r.x, 1, 0.0f) == cudaErrorLaunchFailure);
  CHECK(cudaEventQuery(r.event) == cudaErrorLaunchFailure);
  ok(cudaSetDevice(1));
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);  // the thread's own, once
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
