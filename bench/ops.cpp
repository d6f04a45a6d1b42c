// bench_ops: the overhead of an operation, measured on tensors so small that the arithmetic costs
// next to nothing (no peer, no bar). Then some operations on tensors larger than the caches,
// compared with PyTorch.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <braid/braid.hpp>

#include "ops_large.hpp"
#include "support/beside.hpp"
#include "support/formula.hpp"
#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/timing.hpp"

namespace {

using braid::Tensor;
using Numbers = std::vector<double>;

constexpr std::int64_t kSide = 8;
constexpr std::size_t kCells = kSide * kSide;

// The operands: the matrices a and b, b also as a leaf that requires a gradient, and labels; and
// the same as plain arrays.
struct Inputs {
  Tensor a = matrix(bench::kInputSeed), b = matrix(bench::kTargetSeed),
         leaf = matrix(bench::kTargetSeed).requires_grad_();
  Tensor labels = braid::tensor(bench::labels(kSide, kSide, bench::kTargetSeed));
  static Tensor matrix(std::uint64_t seed) {
    return braid::tensor(bench::uniform(kCells, seed)).reshape({kSide, kSide});
  }
};
struct Plain {
  std::vector<float> a = bench::uniform(kCells, bench::kInputSeed),
                     b = bench::uniform(kCells, bench::kTargetSeed);
  std::vector<std::int64_t> labels = bench::labels(kSide, kSide, bench::kTargetSeed);
  [[nodiscard]] double at(const std::vector<float>& m, std::int64_t i, std::int64_t j) const {
    return m[static_cast<std::size_t>(i * kSide + j)];
  }
};

/// Returns f(index) for each element of a matrix.
template <class F> Numbers each(const F& f) {
  Numbers out;
  for (std::size_t i = 0; i < kCells; ++i) out.push_back(f(i));
  return out;
}
/// Returns f(i) for each row.
template <class F> Numbers rows(const F& f) {
  Numbers out;
  for (std::int64_t i = 0; i < kSide; ++i) out.push_back(f(i));
  return out;
}
/// Returns log Σ exp over row i.
double log_sum(const Plain& p, std::int64_t i) {
  double sum = 0;
  for (std::int64_t j = 0; j < kSide; ++j) sum += std::exp(p.at(p.a, i, j));
  return std::log(sum);
}

struct Op {
  const char* name;
  Tensor (*run)(const Inputs&);
  Numbers (*want)(const Plain&);
  bool records = false;  // with gradient recording
};

const Op kOps[] = {
    {"empty", [](const Inputs&) { return braid::empty({0}); },
     [](const Plain&) { return Numbers{}; }},
    {"view_transpose", [](const Inputs& x) { return x.a.t(); },
     [](const Plain& p) {
       return each([&](std::size_t i) {
         return p.at(p.a, static_cast<std::int64_t>(i) % kSide,
                     static_cast<std::int64_t>(i) / kSide);
       });
     }},
    {"view_row", [](const Inputs& x) { return x.a[1]; },
     [](const Plain& p) { return rows([&](std::int64_t j) { return p.at(p.a, 1, j); }); }},
    {"add", [](const Inputs& x) { return x.a + x.b; },
     [](const Plain& p) { return each([&](std::size_t i) { return double{p.a[i]} + p.b[i]; }); }},
    {"add_scalar", [](const Inputs& x) { return x.a + 2.0; },
     [](const Plain& p) { return each([&](std::size_t i) { return p.a[i] + 2.0; }); }},
    {"add_broadcast", [](const Inputs& x) { return x.a + x.b[0]; },
     [](const Plain& p) {
       return each([&](std::size_t i) { return double{p.a[i]} + p.b[i % kSide]; });
     }},
    {"mul", [](const Inputs& x) { return x.a * x.b; },
     [](const Plain& p) { return each([&](std::size_t i) { return double{p.a[i]} * p.b[i]; }); }},
    {"relu", [](const Inputs& x) { return relu(x.a); },
     [](const Plain& p) {
       return each([&](std::size_t i) { return std::max(0.0, double{p.a[i]}); });
     }},
    {"exp", [](const Inputs& x) { return exp(x.a); },
     [](const Plain& p) { return each([&](std::size_t i) { return std::exp(double{p.a[i]}); }); }},
    {"gelu", [](const Inputs& x) { return gelu(x.a); },
     [](const Plain& p) {
       return each([&](std::size_t i) {
         return 0.5 * p.a[i] * std::erfc(-double{p.a[i]} * std::sqrt(0.5));
       });
     }},
    {"sum", [](const Inputs& x) { return x.a.sum(); },
     [](const Plain& p) {
       double sum = 0;
       for (const float v : p.a) sum += v;
       return Numbers{sum};
     }},
    {"max_of_rows", [](const Inputs& x) { return amax(x.a, {1}); },
     [](const Plain& p) {
       return rows([&](std::int64_t i) {
         return double{*std::max_element(p.a.begin() + i * kSide, p.a.begin() + (i + 1) * kSide)};
       });
     }},
    {"softmax", [](const Inputs& x) { return softmax(x.a); },
     [](const Plain& p) {
       return each([&](std::size_t i) {
         return std::exp(p.a[i] - log_sum(p, static_cast<std::int64_t>(i) / kSide));
       });
     }},
    {"cross_entropy", [](const Inputs& x) { return cross_entropy(x.a, x.labels); },
     [](const Plain& p) {
       double loss = 0;
       for (std::int64_t i = 0; i < kSide; ++i)
         loss += log_sum(p, i) - p.at(p.a, i, p.labels[static_cast<std::size_t>(i)]);
       return Numbers{loss / kSide};
     }},
    {"matmul", [](const Inputs& x) { return matmul(x.a, x.b); },
     [](const Plain& p) {
       return each([&](std::size_t cell) {
         const auto i = static_cast<std::int64_t>(cell) / kSide,
                    j = static_cast<std::int64_t>(cell) % kSide;
         double sum = 0;
         for (std::int64_t k = 0; k < kSide; ++k) sum += p.at(p.a, i, k) * p.at(p.b, k, j);
         return sum;
       });
     }},
    {"cat", [](const Inputs& x) { return braid::cat({x.a, x.b}); },
     [](const Plain& p) {
       Numbers out(p.a.begin(), p.a.end());
       out.insert(out.end(), p.b.begin(), p.b.end());
       return out;
     }},
    {"mul_recorded", [](const Inputs& x) { return x.a * x.leaf; },
     [](const Plain& p) { return each([&](std::size_t i) { return double{p.a[i]} * p.b[i]; }); },
     true},
    {"mul_sum_backward",
     [](const Inputs& x) {
       x.leaf.set_grad({});
       (x.a * x.leaf).sum().backward();
       return x.leaf.grad();
     },
     [](const Plain& p) { return Numbers(p.a.begin(), p.a.end()); }, true},
};

/// Returns an empty text if the operation agrees with the plain loops, else a description of the
/// difference.
std::string disagreement(const Op& op, const Inputs& inputs, const Plain& plain) {
  const Tensor y = op.run(inputs);
  const braid::NoGrad guard;
  const Tensor got = y.to(braid::DType::float64).contiguous();
  const Numbers want = op.want(plain);
  if (static_cast<std::size_t>(got.numel()) != want.size())
    return braid::str("expected ", want.size(), " numbers, got ", got.numel());
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double value = got.data<double>()[i];
    if (!(std::abs(value - want[i]) <= 1e-5 * std::max(1.0, std::abs(want[i]))))
      return braid::str("number ", i, ": expected ", want[i], ", got ", value);
  }
  return "";
}

/// Collects the times of all repetitions by name.
class Times final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration)
        of[run.run_name.function_name].us.push_back(run.GetAdjustedRealTime());
  }
  std::map<std::string, bench::Series> of;
};

int run(const bench::Options& options) {
  bench::Json machine = bench::machine_card();
  const std::string warning = bench::busy_warning();
  std::printf("%s\n%s%s", bench::machine_line().c_str(), warning.c_str(),
              warning.empty() ? "" : "\n");
  bench::Options alone = options;
  alone.no_peers = options.no_peers || options.check;
  bench::Peers peers(alone, true);
  braid::set_num_threads(1);
  const Inputs inputs;
  const Plain plain;
  for (const Op& op : kOps) {
    const std::string wrong = disagreement(op, inputs, plain);
    if (wrong.empty()) continue;
    std::fprintf(stderr, "%s disagrees with the plain loops: %s\n", op.name, wrong.c_str());
    return 1;
  }
  const std::vector<bench::LargeOp> large = bench::large_ops();
  std::vector<int> counts = {1};
  if (bench::cores().size() > 1) counts.push_back(2);
  for (const bench::LargeOp& op : large)
    for (const int threads : counts) {
      const std::string wrong = bench::disagreement(op, threads, peers);
      if (wrong.empty()) continue;
      std::fprintf(stderr, "%s, %d threads, disagrees with the plain loops: %s\n",
                   op.row.name.c_str(), threads, wrong.c_str());
      return 1;
    }
  std::printf("all %zu operations agree with plain loops\n", std::size(kOps) + large.size());
  if (options.check) return 0;

  braid::set_num_threads(1);
  for (const Op& op : kOps) {
    benchmark::RegisterBenchmark(op.name,
                                 [&](benchmark::State& state) {
                                   braid::GradMode mode(op.records);
                                   for (auto _ : state) benchmark::DoNotOptimize(op.run(inputs));
                                 })
        ->Unit(benchmark::kMicrosecond)
        ->MinTime(0.02)
        ->Repetitions(2 * options.rounds);
  }
  // interleaving makes a drift of the machine affect all equally
  char name[] = "bench_ops", interleave[] = "--benchmark_enable_random_interleaving=true";
  char* arguments[] = {name, interleave, nullptr};
  int count = 2;
  benchmark::Initialize(&count, arguments);
  Times times;
  benchmark::RunSpecifiedBenchmarks(&times);
  benchmark::Shutdown();

  std::vector<bench::Json> table;
  double noise = 0;
  for (const Op& op : kOps) {
    const bench::Series& series = times.of[op.name];
    if (series.us.empty())
      throw std::runtime_error(std::string(op.name) + ": expected times, got none");
    noise = std::max(noise, series.noise());
    std::printf("%-18s %9.3f us (+-%.0f %%)\n", op.name, series.time(), 100 * series.noise());
    bench::Json row;
    row.set("name", op.name).set("device", "cpu:0").set("threads", 1).set("ours_us", series.time());
    table.push_back(row.set("peer", nullptr).set("peer_us", nullptr).set("ratio", nullptr));
  }
  bool all_met = true;
  for (const bench::LargeOp& op : large)
    for (const int threads : counts)
      all_met = bench::measure(op.row, threads, options.rounds, peers, table, noise) && all_met;
  bench::write_json(options, machine.set("noise", noise), table);
  return options.strict && !all_met ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program(
      argc, argv,
      {"bench_ops",
       "what a call of an operation costs, on 8 x 8 matrices; and some large ones beside PyTorch's",
       2,
       {{"BRAID_PIN", "1"}}},
      run);
}
