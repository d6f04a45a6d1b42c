#include <algorithm>
#include <string_view>

#include "rig.hpp"
#include "wrong_programs.hpp"

using namespace braid;
using namespace braid::streams_test;

namespace {

std::string base(const char* file) {
  const std::string_view text(file);
  return std::string(text.substr(text.rfind('/') + 1));
}

// Every mistake is reported with the places of its calls, in every order of the executor; the same
// program without the mistake is not.
void check_program(const Program& program) {
  for (const OrderOf& order : kOrders) {
    INFO(program.name << ", order " << static_cast<int>(order.order) << " seed " << order.seed);
    const Fresh fresh;
    simt::set_stream_order(order.order, order.seed);
    const Fault at = program.run(false);
    const std::vector<simt::Report> wrong = simt::take_reports();
    INFO("reports:\n" << all_texts(wrong));
    const auto names = [&](const simt::Report& report, int line) {
      return line == 0 ||
             report.text.find(base(program.file) + ":" + std::to_string(line)) != std::string::npos;
    };
    const auto expected = [&](const simt::Report& report) {
      return report.kind == program.kind && names(report, at.line) && names(report, at.other);
    };
    CHECK(std::any_of(wrong.begin(), wrong.end(), expected));
    for (const simt::Report& report : wrong)
      CHECK((report.file == base(program.file) || report.file == "rig.hpp"));

    simt::reset();
    simt::set_stream_order(order.order, order.seed);
    (void)program.run(true);
    const std::vector<simt::Report> right = simt::take_reports();
    INFO("reports of the corrected program:\n" << all_texts(right));
    CHECK(right.empty());
    CHECK(simt::live_objects().empty());
    CHECK(cudaGetLastError() == cudaSuccess);
  }
}

}  // namespace

TEST_CASE("streams: programs without an order are reported, their corrected twins are not") {
  for (const Program& program : ordering_programs()) check_program(program);
}

TEST_CASE(
    "streams: programs that misuse memory and handles are reported, their corrected twins are "
    "not") {
  for (const Program& program : memory_programs()) check_program(program);
}

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
