// bench_scale: predicts, from a fitted model of the network, how data-parallel training grows with
// the number of ranks. It measures nothing: bench_ddp does, and prints the model's two numbers.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "scale/model.hpp"
#include "support/options.hpp"

namespace {

using namespace bench::scale;

constexpr double kMiB = 1 << 20;
constexpr int kRanks[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

/// Reads a positive number, or throws.
double positive(const bench::Options& options, const char* name, double otherwise) {
  const std::string text = options.value(name, "");
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(value > 0) || std::isinf(value))
    throw std::invalid_argument(std::string(name) + ": expected a positive number, got " + text);
  return value;
}

struct Assumptions {
  Link link;
  double flops;       ///< of one rank, per second
  double bytes;       ///< of a gradient's element on the wire
  double first, cap;  ///< of the buckets
  double reduce;      ///< bytes a second
};

Step predict(const Net& net, int ranks, const Assumptions& a, Algorithm& used) {
  const double compute = net.operations / a.flops;
  const std::vector<Bucket> list = buckets(net, compute, a.first, a.cap, a.bytes);
  std::vector<double> seconds;
  double times[2] = {};
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::doubling})
    for (const Bucket& b : list)
      times[static_cast<int>(algorithm)] +=
          all_reduce_seconds(b.bytes, ranks, a.link, algorithm, a.reduce);
  used = times[0] <= times[1] ? Algorithm::ring : Algorithm::doubling;
  for (const Bucket& b : list)
    seconds.push_back(all_reduce_seconds(b.bytes, ranks, a.link, used, a.reduce));
  return step_of(list, compute, seconds);
}

void print(const Net& net, const Assumptions& a, std::vector<bench::Json>& rows) {
  std::printf(
      "\n%s, %s: %lld parameters, %lld samples a rank, %.3g operations a step, %zu buckets\n",
      net.name.c_str(), net.about.c_str(), static_cast<long long>(net.parameters()),
      static_cast<long long>(net.samples), net.operations,
      buckets(net, 1, a.first, a.cap, a.bytes).size());
  std::printf("%6s %12s %12s %12s %10s %12s  %s\n", "ranks", "step ms", "reduce ms", "samples/s",
              "hidden", "efficiency", "all-reduce");
  for (const int ranks : kRanks) {
    Algorithm used{};
    const Step step = predict(net, ranks, a, used);
    const double rate = static_cast<double>(net.samples) * ranks / step.total,
                 efficiency = step.compute / step.total;
    std::printf("%6d %12.1f %12.1f %12.1f %9.1f%% %11.1f%%  %s\n", ranks, 1e3 * step.total,
                1e3 * step.communicate, rate, 100 * step.hidden(), 100 * efficiency,
                ranks == 1 ? "-" : name_of(used));
    bench::Json row;
    row.set("net", net.name).set("ranks", ranks).set("step_s", step.total);
    row.set("all_reduce_s", step.communicate).set("hidden", step.hidden());
    rows.push_back(row.set("efficiency", efficiency));
  }
}

bool is(bool ok, const char* what) {
  if (!ok) std::printf("FAIL: %s\n", what);
  return ok;
}
bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

/// Compares the model with what is known without it.
bool check() {
  bool ok = is(resnet50(1).parameters() == 25'557'032, "ResNet-50 has 25,557,032 parameters");
  ok &= is(gpt2(1).parameters() == 124'439'808, "GPT-2 has 124,439,808 parameters");
  // 4.09 billion multiplications and additions of an image
  ok &= is(std::abs(resnet50(1).operations / 3 / 2 - 4.09e9) < 0.03e9, "ResNet-50's operations");
  const Net net = equal_layers(12, 1024, 64);
  ok &= is(net.gradients.front().ready < 0.4 && near(net.gradients.back().ready, 1),
           "the last layer's gradient comes first");
  const Link link{1e-5, 1e9};
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::doubling})
    for (const int ranks : {2, 3, 8}) {
      std::vector<Sample> samples;
      for (double bytes = 1024; bytes < 1e8; bytes *= 4)
        samples.push_back({bytes, all_reduce_seconds(bytes, ranks, link, algorithm)});
      const Link found = fit(samples, ranks, algorithm);
      ok &= is(near(found.alpha, link.alpha) && near(found.beta, link.beta),
               "the fit finds the link that made the times");
    }
  ok &= is(near(all_reduce_seconds(1e6, 2, link, Algorithm::ring), 2e-5 + 1e-3), "two ranks");
  ok &= is(near(all_reduce_seconds(1e6, 8, link, Algorithm::doubling), 6e-5 + 1.75e-3), "8 ranks");
  // three buckets of 1 s: the second waits for the first, the third for its gradient
  const std::vector<Bucket> list{{1, 1}, {1, 1.5}, {1, 4}};
  const Step step = step_of(list, 4, {1, 1, 1});
  ok &= is(near(step.total, 5) && near(step.hidden(), 2.0 / 3), "the schedule of three buckets");
  double last = 2;
  for (const int ranks : kRanks) {
    Algorithm used{};
    const Assumptions a{link, 1e12, 4, kMiB, 25 * kMiB, 0};
    const Step s = predict(resnet50(32), ranks, a, used);
    ok &= is(s.total >= s.compute && s.compute / s.total <= last, "efficiency falls with ranks");
    last = s.compute / s.total;
  }
  ok &= is(last < 1 && last > 0, "efficiency of 1,024 ranks");
  std::printf("scale: %s\n", ok ? "the model agrees with known values" : "FAIL");
  return ok;
}

int run(const bench::Options& options) {
  if (options.check) return check() ? 0 : 1;
  Assumptions a;
  a.link = {1e-6 * positive(options, "--alpha", 50), 1e9 * positive(options, "--beta", 0.117)};
  a.flops = 1e9 * positive(options, "--gflops", 1000);
  a.bytes = positive(options, "--bytes", 4);
  a.first = positive(options, "--first", 1) * kMiB;
  a.cap = positive(options, "--cap", 25) * kMiB;
  a.reduce = options.has("--reduce") ? 1e9 * positive(options, "--reduce", 1) : 0;
  std::printf(
      "A prediction, not a measurement. It assumes:\n"
      "  a message of n bytes takes alpha + n / beta: alpha %.3g us, beta %.4g GB/s%s;\n"
      "  every rank has its own link, in both directions at once, and no switch is shared;\n"
      "  all-reduce by the ring, or by halving and doubling, whichever is faster for the net;\n"
      "  adding %s; all buckets one after another, in the order of backward, %.3g MiB first, then "
      "%.3g MiB;\n"
      "  %.3g bytes for each element on the wire;\n"
      "  a rank computes %.4g GFLOP/s, equally in all layers, and backward costs twice the "
      "forward;\n"
      "  communication takes no time from the computation, all ranks are equally fast, and the "
      "optimizer,\n"
      "  the loader and stragglers cost nothing. Stragglers make large jobs slower than this.\n"
      "bench_ddp measures alpha and beta, and compares the model with steps of 2 ranks.\n",
      1e6 * a.link.alpha, a.link.beta / 1e9,
      options.has("--alpha") || options.has("--beta") ? "" : " (assumed: 1 Gbit/s Ethernet)",
      a.reduce > 0 ? "costs time" : "costs nothing", a.first / kMiB, a.cap / kMiB, a.bytes,
      a.flops / 1e9);
  std::vector<bench::Json> rows;
  const int images = options.number("--images", 32, 1 << 20),
            sequences = options.number("--sequences", 4, 1 << 20);
  print(resnet50(images), a, rows);
  print(gpt2(sequences), a, rows);
  bench::Json card;
  card.set("alpha_s", a.link.alpha).set("beta_bytes_s", a.link.beta).set("flops", a.flops);
  card.set("bytes", a.bytes).set("first_bytes", a.first).set("cap_bytes", a.cap);
  bench::write_json(options, card, rows);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program(
      argc, argv,
      {.name = "bench_scale",
       .about = "predicts data-parallel training of ResNet-50 and GPT-2 124M on up to 1,024 ranks",
       .cores = 0,
       .options = {{"--alpha", "US", "time of an empty message in us, as bench_ddp fits it"},
                   {"--beta", "GB", "speed of the network in GB/s, as bench_ddp fits it"},
                   {"--gflops", "N", "speed of one rank"},
                   {"--bytes", "N", "bytes of an element on the wire; 2: bfloat16 compression"},
                   {"--first", "MIB", "size of the first bucket"},
                   {"--cap", "MIB", "size of the other buckets"},
                   {"--reduce", "GB", "speed at which a rank adds, in GB/s"},
                   {"--images", "N", "images of a rank in a step"},
                   {"--sequences", "N", "sequences of a rank in a step"}}},
      run);
}
