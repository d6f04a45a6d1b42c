// bench_loader: batches per second from a data set in memory (100,000 rows of 784 floats, batches
// of 64, shuffled), compared with PyTorch's DataLoader over its TensorDataset. In the first row the
// calling thread makes the batches; in the second, one worker makes them in advance.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <braid/braid.hpp>

#include "support/formula.hpp"
#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/peer.hpp"
#include "support/timing.hpp"

namespace {

constexpr std::int64_t kRows = 100'000, kWidth = 784, kBatch = 64;
constexpr int kTimed = 3000;
constexpr double kBar = 40'000;  // batches per second
constexpr const char* kName = "loader_100000x784_b64";

/// A row and its index.
struct Row {
  braid::Tensor values, number;
  BRAID_FIELDS(values, number)
};
using Dataset = braid::data::TensorDataset<Row>;
using Loader = braid::data::DataLoader<Dataset>;

Loader make_loader(const Row& rows, int workers) {
  return Loader(Dataset(rows), {.batch_size = kBatch, .shuffle = true, .workers = workers});
}

/// Iterates over batches and epochs without end.
class Batches {
 public:
  explicit Batches(Loader loader) : loader_(std::move(loader)) {}
  const Row& next() {
    if (at_) ++*at_;
    if (!at_ || *at_ == loader_.end()) {
      at_.reset();
      at_.emplace(loader_.begin());
    }
    return **at_;
  }

 private:
  Loader loader_;
  std::optional<Loader::iterator> at_;
};

/// Checks that an epoch contains every row once, unchanged, and not in the original order.
bool correct(const Row& rows, int workers) {
  Loader loader = make_loader(rows, workers);
  std::vector<int> seen(kRows, 0);
  bool in_order = true;
  std::int64_t expected = 0;
  for (const Row& batch : loader) {
    const std::vector<std::int64_t> numbers = batch.number.to_vector<std::int64_t>();
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      ++seen[static_cast<std::size_t>(numbers[k])];
      in_order = in_order && numbers[k] == expected++;
      const float* want = rows.values.data<float>() + numbers[k] * kWidth;
      if (std::memcmp(batch.values.data<float>() + static_cast<std::int64_t>(k) * kWidth, want,
                      kWidth * sizeof(float)) != 0)
        return false;
    }
  }
  for (const int times : seen) {
    if (times != 1) return false;
  }
  return !in_order;
}

int run(const bench::Options& options) {
  bench::Json machine = bench::machine_card();
  const std::string warning = bench::busy_warning();
  std::printf("%s\n%s%s", bench::machine_line().c_str(), warning.c_str(),
              warning.empty() ? "" : "\n");
  std::unique_ptr<bench::Peer> peer;
  if (!options.no_peers) {
    peer = std::make_unique<bench::Peer>("torch-python", options.peers + "/bin/peer-python",
                                         bench::core_list(2));
    if (!peer->available()) std::printf("torch-python is missing: %s\n", peer->error().c_str());
  }
  const Row rows{
      braid::tensor(bench::uniform(kRows * kWidth, bench::kInputSeed)).reshape({kRows, kWidth}),
      braid::arange(kRows, {.dtype = braid::DType::int64})};
  for (const int workers : {0, 1}) {
    if (!correct(rows, workers)) {
      std::fprintf(stderr,
                   "bench_loader: an epoch with %d workers is not the data set in another order\n",
                   workers);
      return 1;
    }
  }
  std::printf("an epoch has every row once, with its own numbers, in another order\n");
  if (options.check) return 0;

  Batches alone(make_loader(rows, 0)), ahead(make_loader(rows, 1));
  std::vector<std::function<double()>> contenders = {
      [&] { return bench::time_step(kTimed, [&] { alone.next(); }); },
      [&] { return bench::time_step(kTimed, [&] { ahead.next(); }); }};
  if (peer) contenders.push_back([&peer] { return peer->run(kName, 1, kTimed).value_or(0); });
  const std::vector<bench::Series> series = bench::interleave(options.rounds, contenders);
  const double theirs = peer ? series[2].time() : 0;
  const auto per_second = [](double us) { return us > 0 ? 1e6 / us : 0; };

  std::vector<bench::Json> out;
  for (const int workers : {0, 1}) {
    const bench::Series& ours = series[static_cast<std::size_t>(workers)];
    bench::Json row;
    row.set("name", kName).set("workers", workers).set("batches_per_s", per_second(ours.time()));
    if (theirs > 0)
      row.set("peer", peer->name())
          .set("peer_batches_per_s", per_second(theirs))
          .set("ratio", theirs / ours.time());
    else row.set("peer", nullptr).set("peer_batches_per_s", nullptr).set("ratio", nullptr);
    out.push_back(row);
    std::printf("%s, %d workers: %.0f batches/s (+-%.0f %%)", kName, workers,
                per_second(ours.time()), 100 * ours.noise());
    if (theirs > 0)
      std::printf("; %s %.0f (+-%.0f %%), %.1f x", peer->name().c_str(), per_second(theirs),
                  100 * series[2].noise(), theirs / ours.time());
    else std::printf("; no peer%s%s", peer ? ": " : "", peer ? peer->error().c_str() : "");
    if (workers == 0)
      std::printf("  bar %.0f %s", kBar, per_second(ours.time()) >= kBar ? "met" : "MISSED");
    std::printf("\n");
  }
  bench::write_json(options, machine.set("noise", series[0].noise()), out);
  return options.strict && per_second(series[0].time()) < kBar ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program(
      argc, argv,
      {"bench_loader",
       "batches a second of a data set in memory, beside PyTorch's DataLoader",
       2,
       {{"BRAID_THREADS", "1"}}},
      run);
}
