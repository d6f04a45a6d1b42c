// bench_ladder: three ladders of kernels, from a naive one to Braid's own. Under the emulation it
// counts the memory traffic of each step; on a GPU it times the steps.
#include <cstdio>
#include <exception>
#include <functional>

#include <braid/core/device.hpp>
#include <braid/kernels/cuda.hpp>

#include "ladder/timer.hpp"
#include "ladder/trial.hpp"
#include "support/machine.hpp"
#include "support/options.hpp"
#if SIMT_EMULATED
#include "ladder/counts.hpp"
#include "simt/checker.hpp"
#include "simt/config.hpp"
#endif

namespace braid::ladder {
namespace {

using bench::Json;

/// Compares every step with float64 at sizes that are not multiples of a tile, and prints the wrong
/// ones. Also calls the timer once, to test it.
template <class Trial, std::size_t N>
bool all_right(const Step<typename Trial::Problem> (&steps)[N],
               std::initializer_list<Trial*> trials) {
  bool right = true;
  for (Trial* trial : trials)
    for (const auto& step : steps) {
      const double error = trial->error(step),
                   us = time_on(stream(), 1, [&] { step.launch(trial->problem(), stream()); });
      if (error <= 1 && us >= 0) continue;
      std::fprintf(stderr, "%s, %s: off by %g of the tolerance\n", trial->text().c_str(), step.name,
                   error);
      right = false;
    }
  return right;
}

bool check_results() {
  SgemmTrial odd(130, 67, 45), tall(129, 36, 68);
  SoftmaxTrial odd_rows(70, 67), long_rows(3, 1025), masked(9, 512, 4, true);
  TensorTrial halves(130, 67, 45, Use::forward), input(130, 67, 45, Use::input),
      weight(129, 72, 40, Use::weight);
  const bool sgemm = all_right(kSgemmSteps, {&odd, &tall}),
             softmax = all_right(kSoftmaxSteps, {&odd_rows, &long_rows, &masked}),
             tensor = all_right(kTensorSteps, {&halves}),
             backward = all_right(kBackwardSteps, {&input, &weight});
  const bool right = sgemm && softmax && tensor && backward;
  if (right) std::printf("all steps agree with float64 at sizes that no tile divides\n");
  return right;
}

#if SIMT_EMULATED
// Runs every step once. The counts are the same on every machine.
template <class Trial, std::size_t N>
bool print_counts(const Step<typename Trial::Problem> (&steps)[N], Trial& trial,
                  std::vector<Json>& rows) {
  std::printf("\n%-31s global memory                    shared memory\n", trial.text().c_str());
  std::printf(
      "%-14s right  requests  sectors  each  least  requests   passes  each  conflicts   slots\n",
      "step");
  bool all = true;
  for (const auto& step : steps) {
    const bool right = trial.error(step, true) <= 1;
    const Counts c = count(step, trial);
    std::printf("%s\n", line_of(step.name, right, c).c_str());
    rows.push_back(Json()
                       .set("name", trial.text() + ", " + step.name)
                       .set("device", "cuda:0")
                       .set("simulated", true)
                       .set("right", right)
                       .set("global_requests", static_cast<int>(c.global))
                       .set("sectors", static_cast<int>(c.sectors))
                       .set("shared_requests", static_cast<int>(c.shared))
                       .set("passes", static_cast<int>(c.passes))
                       .set("bank_conflicts", static_cast<int>(c.conflicts()))
                       .set("multiplies", static_cast<int>(c.multiplies))
                       .set("issue_slots", static_cast<int>(c.slots())));
    all = all && right;
  }
  return all;
}

bool measure(const bench::Options&, std::vector<Json>& rows) {
  if (!simt::config().checks || !simt::kernels_are_instrumented()) {
    std::printf("the checker is off, so nothing can be counted\n");
    return true;
  }
  SgemmTrial sgemm = counted_sgemm();
  SoftmaxTrial softmax = counted_softmax();
  bool right = print_counts(kSgemmSteps, sgemm, rows);
  right &= print_counts(kSoftmaxSteps, softmax, rows);
  TensorTrial forward = counted_tensor(Use::forward);
  right &= print_counts(kTensorSteps, forward, rows);
  for (const Use use : {Use::input, Use::weight}) {
    TensorTrial backward = counted_tensor(use);
    right &= print_counts(kBackwardSteps, backward, rows);
  }
  std::printf(
      "\na request is one load, store or cp.async of a warp; a sector 32 bytes; a pass goes over "
      "the 32 banks; each: of a request; least: that would do; slots: instructions of a warp for "
      "memory and multiplies\n");
  return right;
}
#else
// Times the steps in ABBA order. "of the last step" is the speed relative to the last step.
template <class Trial, std::size_t N>
bool print_times(const bench::Options& options, const Step<typename Trial::Problem> (&steps)[N],
                 Trial& trial, std::vector<Json>& rows) {
  bool all = true, right[N];
  std::vector<std::function<double()>> contenders;
  for (std::size_t i = 0; i < N; ++i) {
    right[i] = trial.error(steps[i]) <= 1;
    all = all && right[i];
    contenders.emplace_back([&trial, &step = steps[i]] {
      return time_on(stream(), 5, [&] { step.launch(trial.problem(), stream()); });
    });
  }
  const std::vector<bench::Series> series = bench::interleave(options.rounds, contenders);
  std::printf("\n%s\n%-14s right        ms  %8s  of the last step\n", trial.text().c_str(), "step",
              Trial::kRate);
  for (std::size_t i = 0; i < N; ++i) {
    const double us = series[i].time(), rate = trial.work() / us * 1e-3,
                 part = series[N - 1].time() / us;
    std::printf("%-14s %-5s %9.3f  %8.0f  %5.2f (+-%.0f %%)\n", steps[i].name,
                right[i] ? "yes" : "NO", us * 1e-3, rate, part, 100 * series[i].noise());
    rows.push_back(Json()
                       .set("name", trial.text() + ", " + steps[i].name)
                       .set("device", "cuda:0")
                       .set("simulated", false)
                       .set("right", right[i])
                       .set("value", us * 1e-3)
                       .set("unit", "ms")
                       .set("rate", rate)
                       .set("rate_unit", Trial::kRate)
                       .set("of_last", part)
                       .set("noise", series[i].noise()));
  }
  return all;
}

bool measure(const bench::Options& options, std::vector<Json>& rows) {
  bool right = true;
  {
    SgemmTrial trial(4096, 4096, 4096);
    right = print_times(options, kSgemmSteps, trial, rows);
  }
  {
    SoftmaxTrial trial(65536, 1024);
    right &= print_times(options, kSoftmaxSteps, trial, rows);
  }
  {
    TensorTrial trial(4096, 4096, 4096, Use::forward);
    right &= print_times(options, kTensorSteps, trial, rows);
  }
  for (const Use use : {Use::input, Use::weight}) {
    TensorTrial trial(4096, 4096, 4096, use);
    right &= print_times(options, kBackwardSteps, trial, rows);
  }
  return right;
}
#endif

int run(const bench::Options& options) {
  if (device_count(DeviceType::cuda) == 0) {
    std::printf("SKIP(no GPU): %s\n", cuda::unavailable_reason().c_str());
    return 0;
  }
  std::printf("%s\n%s\n", bench::machine_line().c_str(),
              device_context(Device("cuda:0")).backend->description().c_str());
  if (!check_results()) return 1;
  if (options.check) return 0;
  std::vector<Json> rows;
  const bool right = measure(options, rows);
  bench::write_json(options, bench::machine_card(), rows);
  return right ? 0 : 1;
}

}  // namespace
}  // namespace braid::ladder

int main(int argc, char** argv) {
  return bench::run_program(argc, argv,
                            {"bench_ladder", "kernels from naive to ours, step by step", 0, {}},
                            braid::ladder::run);
}
