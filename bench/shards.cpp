// bench_shards: tests and times DeterministicDataParallel. Four models train for 100 steps over 1
// to 8 logical devices, on batches whose number of rows is not divisible by every number of
// devices. The SHA-256 of all parameters and buffers must be the same for each number of devices.
// Then it times a step in 24 virtual replicas, on one device and on two, against a step of the
// whole batch.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <braid/braid.hpp>
#include <braid/core/internal/io/sha256.hpp>

#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/rows.hpp"
#include "support/timing.hpp"

namespace {

using namespace braid;

constexpr int kDevices = 8, kReplicas = 24, kSteps = 100, kTimedSteps = 10;
// rows of the batches, used in turn; the last batch has fewer rows than there are virtual replicas
constexpr std::int64_t kRows[] = {61, 37, 20};

struct Mlp : nn::Module {
  nn::Linear fc1{64, 128}, fc2{128, 128}, fc3{128, 10};
  Tensor operator()(const Tensor& x) const { return fc3(relu(fc2(relu(fc1(x))))); }
  BRAID_FIELDS(fc1, fc2, fc3)
};

struct ConvNet : nn::Module {
  nn::Conv2d conv1{1, 8, 3};
  nn::BatchNorm2d norm1{8};
  nn::Conv2d conv2{8, 16, 3};
  nn::BatchNorm2d norm2{16};
  nn::Dropout dropout{0.25};
  nn::Linear fc{16 * 4 * 4, 10};
  Tensor operator()(const Tensor& x) const {
    const Tensor h = relu(norm2(conv2(relu(norm1(conv1(x.reshape({-1, 1, 8, 8})))))));
    return fc(dropout(h.flatten(1)));
  }
  BRAID_FIELDS(conv1, norm1, conv2, norm2, dropout, fc)
};

struct Lstm : nn::Module {
  nn::LSTM lstm{8, 32, {.num_layers = 2, .batch_first = true, .dropout = 0.1}};
  nn::Linear fc{32, 10};
  Tensor operator()(const Tensor& x) const {
    return fc(lstm(x.reshape({-1, 8, 8})).output.select(1, 7));
  }
  BRAID_FIELDS(lstm, fc)
};

struct Transformer : nn::Module {
  nn::Linear in{8, 32};
  nn::TransformerEncoderLayer layer{32, 4, {.dim_feedforward = 64, .batch_first = true}};
  nn::Linear fc{32, 10};
  Tensor operator()(const Tensor& x) const {
    return fc(layer(in(x.reshape({-1, 8, 8}))).mean({1}));
  }
  BRAID_FIELDS(in, layer, fc)
};

struct Batch {
  Tensor x, labels;
};
const std::vector<Batch>& batches() {
  static const std::vector<Batch> list = [] {
    std::vector<Batch> made;
    for (const std::int64_t rows : kRows)
      made.push_back({bench::input(rows, 64), bench::classes(rows, 10)});
    return made;
  }();
  return list;
}

template <class M, class O> class Training {
 public:
  /// virtual_replicas = 0: the whole batch is one piece for each device.
  Training(M model, int devices, int virtual_replicas)
      : model_(virtual_replicas == 0
                   ? parallel::DataParallel<M>(std::move(model), first(devices))
                   : parallel::DataParallel<M>(parallel::DeterministicDataParallel<M>(
                         std::move(model), first(devices), {virtual_replicas}))) {
    reset();
  }
  void reset() {
    manual_seed(1);
    bench::fill(parameters(model_));
    optimizer_ = std::make_unique<O>(parameters(model_));
  }
  void step(std::size_t number) {
    const Batch& batch = batches()[number % batches().size()];
    optimizer_->zero_grad();
    nn::cross_entropy(model_(batch.x), batch.labels).backward();
    optimizer_->step();
  }
  [[nodiscard]] std::string hash() const {
    Sha256 hash;
    for (const auto& [name, tensor] : state_dict(model_)) {
      const Tensor t = tensor.to("cpu:0").contiguous();
      hash.add(std::as_const(t).storage()->data(),
               static_cast<std::size_t>(t.numel()) * size_of(t.dtype()));
    }
    return hash.hex();
  }

 private:
  static std::vector<Device> first(int n) {
    std::vector<Device> list = devices();
    list.resize(static_cast<std::size_t>(n));
    return list;
  }
  parallel::DataParallel<M> model_;
  std::unique_ptr<O> optimizer_;
};

struct Outcome {
  std::string name, hash;
  bool same = true;
  // us for each step: the whole batch; in virtual replicas on one device and on two
  double whole = 0, one = 0, two = 0, noise = 0;
  [[nodiscard]] double cost() const { return one / whole; }
};

template <class M, class O> Outcome measure(const char* name, const bench::Options& options) {
  Outcome outcome{name, "", true};
  for (int n = 1; n <= kDevices; ++n) {
    Training<M, O> training(M{}, n, kReplicas);
    for (std::size_t i = 0; i < kSteps; ++i) training.step(i);
    const std::string hash = training.hash();
    if (n == 1) outcome.hash = hash;
    if (hash == outcome.hash) continue;
    outcome.same = false;
    std::printf("%s: %d devices give %s, one gives %s\n", name, n, hash.c_str(),
                outcome.hash.c_str());
  }
  if (options.check) return outcome;
  Training<M, O> whole(M{}, 1, 0), one(M{}, 1, kReplicas), two(M{}, 2, kReplicas);
  const auto time = [](auto& training) {
    std::size_t number = 0;
    training.reset();
    return bench::time_step(kTimedSteps, [&] {
      for (std::size_t i = 0; i < batches().size(); ++i) training.step(number++);
    });
  };
  const std::vector<std::function<double()>> contenders = {
      [&] { return time(whole); }, [&] { return time(one); }, [&] { return time(two); }};
  const std::vector<bench::Series> series = bench::interleave(options.rounds, contenders);
  const auto steps = static_cast<double>(batches().size());
  outcome.whole = series[0].time() / steps;
  outcome.one = series[1].time() / steps;
  outcome.two = series[2].time() / steps;
  outcome.noise = std::max(series[0].noise(), series[1].noise());
  return outcome;
}

/// Tests the hash with the examples of FIPS 180-4.
bool hash_is_right() {
  const auto of = [](const std::string& text) {
    Sha256 hash;
    for (const char c : text) hash.add(&c, 1);
    return hash.hex();
  };
  return of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" &&
         of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" &&
         of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
}

int run(const bench::Options& options) {
  if (!hash_is_right()) {
    std::fprintf(stderr, "bench_shards: SHA-256 of the standard's examples is wrong\n");
    return 1;
  }
  const bench::Json machine = bench::machine_card();
  const std::string warning = bench::busy_warning();
  std::printf("%s\n%s%s", bench::machine_line().c_str(), warning.c_str(),
              warning.empty() ? "" : "\n");
  std::vector<Outcome> outcomes;
  outcomes.push_back(measure<Mlp, optim::SGD>("mlp, SGD", options));
  outcomes.push_back(measure<ConvNet, optim::AdamW>("cnn + BatchNorm + dropout, AdamW", options));
  outcomes.push_back(measure<Lstm, optim::RMSprop>("lstm, RMSprop", options));
  outcomes.push_back(measure<Transformer, optim::Adam>("transformer, Adam", options));

  std::vector<bench::Json> rows;
  bool same = true;
  std::string costs;
  for (const Outcome& o : outcomes) {
    same = same && o.same;
    std::printf("%-34s sha256 %s %s", o.name.c_str(), o.hash.substr(0, 16).c_str(),
                o.same ? "for 1 to 8 devices" : "DIFFERS");
    if (!options.check)
      std::printf(
          "; a step %.0f us whole, %.0f us in %d virtual replicas (%.2f x, +-%.0f %%), %.0f us on "
          "two "
          "devices",
          o.whole, o.one, kReplicas, o.cost(), 100 * o.noise, o.two);
    std::printf("\n");
    char cost[64];
    std::snprintf(cost, sizeof cost, "%s%.2f x", costs.empty() ? "" : ", ", o.cost());
    costs += cost;
    bench::Json row;
    row.set("name", o.name)
        .set("virtual_replicas", kReplicas)
        .set("steps", kSteps)
        .set("devices", kDevices)
        .set("sha256", o.hash)
        .set("same", o.same);
    row.set("us_whole", o.whole)
        .set("us_deterministic_one_device", o.one)
        .set("us_deterministic_two_devices", o.two)
        .set("cost", o.cost())
        .set("noise", o.noise);
    rows.push_back(row.set("peer", nullptr).set("simulated", true));
  }
  bench::write_json(options, machine, rows);
  if (!same) {
    std::printf("NOT the same bits for every number of devices\n");
    return 1;
  }
  std::printf("the same bits for 1 to %d devices after %d steps, %zu models%s%s\n", kDevices,
              kSteps, outcomes.size(), options.check ? "" : "; cost of a step on one device: ",
              options.check ? "" : costs.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program(argc, argv,
                            {"bench_shards",
                             "the same bits for 1 to 8 devices, and what that costs",
                             2,
                             {{"BRAID_CPU_DEVICES", "8"}, {"BRAID_THREADS", "1"}}},
                            run);
}
