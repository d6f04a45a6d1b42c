// bench_simt: the cost of the emulation of CUDA on the CPU. It runs on one core and measures
// processor time, so that other programs do not affect the result.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "simt/config.hpp"
#include "simt/device_memory.hpp"
#include "simt/stats.hpp"
#include "simt_kernels.hpp"
#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/timing.hpp"

namespace {

constexpr int kSize = 256;
constexpr int kThreads = 256, kBarriers = 2000;

// A matrix that is registered as device memory.
class Matrix {
 public:
  explicit Matrix(unsigned seed) : values_(static_cast<std::size_t>(kSize) * kSize) {
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] = static_cast<float>((i * 2654435761u + seed) % 1999) / 1000.0f - 1.0f;
    const std::size_t bytes = values_.size() * sizeof(float);
    braid::simt::register_memory(values_.data(), bytes, braid::simt::MemoryKind::device, 0);
    braid::simt::check_range(values_.data(), bytes, true);
  }
  ~Matrix() { braid::simt::unregister_memory(values_.data()); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  void fill(float value) { std::fill(values_.begin(), values_.end(), value); }
  [[nodiscard]] float* data() { return values_.data(); }
  [[nodiscard]] double operator()(int i, int j) const {
    return values_[static_cast<std::size_t>(i) * kSize + static_cast<std::size_t>(j)];
  }

 private:
  std::vector<float> values_;
};

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Returns the time of a call in us: medians over tenths of a second, two in each round.
bench::Series measure(int rounds, const std::function<void()>& f) {
  bench::Series series;
  f();
  for (int r = 0; r < 2 * rounds; ++r) {
    std::vector<double> times;
    for (double total = 0; total < 0.1 || times.size() < 3;) {
      const double start = processor_seconds();
      f();
      times.push_back(processor_seconds() - start);
      total += times.back();
    }
    series.us.push_back(1e6 * bench::median(std::move(times)));
  }
  return series;
}

// Returns the largest relative difference from a plain product in double, over all elements.
double error_of(const Matrix& a, const Matrix& b, const Matrix& c) {
  double worst = 0;
  for (int i = 0; i < kSize; ++i)
    for (int j = 0; j < kSize; ++j) {
      double sum = 0;
      for (int k = 0; k < kSize; ++k) sum += a(i, k) * b(k, j);
      const double e = std::abs(sum - c(i, j)) / (1 + std::abs(sum));
      if (!(e <= worst)) worst = e;
    }
  return worst;
}

struct Spec {
  const char* name;
  const char* unit;
  double bar, scale;  // scale: from microseconds of a call to `unit`
  bool checks;
  std::function<void()> run;
};

int run(const bench::Options& options) {
  bench::Json machine = bench::machine_card();
  const std::string warning = bench::busy_warning();
  std::printf("%s\n%s%s", bench::machine_line().c_str(), warning.c_str(),
              warning.empty() ? "" : "\n");
  Matrix a(1), b(2), c(3);
  const std::vector<Spec> specs = {
      {"barrier_ns", "ns a thread", 12, 1e3 / kThreads / kBarriers, false,
       [] { bench::barriers(kThreads, kBarriers); }},
      {"sgemm256_plain_ms", "ms", 5, 1e-3, false,
       [&] { bench::gemm_plain(kSize, a.data(), b.data(), c.data()); }},
      {"sgemm256_checked_ms", "ms", 100, 1e-3, true,
       [&] { bench::gemm_checked(kSize, a.data(), b.data(), c.data()); }},
  };
  for (const Spec& spec : specs) {
    if (std::string(spec.name) == "barrier_ns") continue;
    braid::simt::set_checks(spec.checks);
    c.fill(NAN);
    const auto before = braid::simt::stats().accesses;
    spec.run();
    const double error = error_of(a, b, c);
    const bool looked = braid::simt::stats().accesses != before;
    if (!(error <= 1e-4) || looked != spec.checks) {
      std::fprintf(stderr, "%s: differs from the plain product by %g, %s\n", spec.name, error,
                   looked ? "checked" : "not checked");
      return 1;
    }
  }
  std::printf("both products agree with a plain one to 1e-4; the checked one was checked\n");
  if (options.check) return 0;
  std::vector<bench::Json> rows;
  bool all_met = true;
  double noise = 0;
  for (const Spec& spec : specs) {
    braid::simt::set_checks(spec.checks);
    const bench::Series series = measure(options.rounds, spec.run);
    const double value = series.time() * spec.scale;
    const bool met = value <= spec.bar;
    all_met = all_met && met;
    noise = std::max(noise, series.noise());
    std::printf("%-20s %8.2f %-11s (+-%.0f %%)  bar %g %s\n", spec.name, value, spec.unit,
                100 * series.noise(), spec.bar, met ? "met" : "MISSED");
    rows.push_back(bench::Json()
                       .set("name", spec.name)
                       .set("device", "cuda:0")
                       .set("simulated", true)
                       .set("threads", 1)
                       .set("value", value)
                       .set("unit", spec.unit)
                       .set("bar", spec.bar)
                       .set("met", met)
                       .set("peer", nullptr));
  }
  bench::write_json(options, machine.set("noise", noise), rows);
  return options.strict && !all_met ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program(argc, argv, {"bench_simt", "the emulation of CUDA on the CPU", 1, {}},
                            run);
}
