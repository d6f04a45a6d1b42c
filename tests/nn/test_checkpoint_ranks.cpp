// Checkpoints of several ranks, which are threads here. Their random state is that of the process.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "nn/train_run.hpp"
#include "support/errors.hpp"
#include "support/faulty_files.hpp"
#include "support/temporary.hpp"
#include "support/warnings.hpp"

using namespace braid;
using namespace braid::test;

namespace {

using Values = std::vector<std::int64_t>;

/// Where the threads exchange values. A rank that has left, or a call that is cut, ends it.
class Exchange {
 public:
  explicit Exchange(int size, int cut = -1)
      : size_(size), cut_(cut), values_(static_cast<std::size_t>(size)) {}
  [[nodiscard]] training::CheckpointRanks ranks(int rank) {
    return {.rank = rank, .size = size_, .gather = [this, rank](std::span<const std::int64_t> v) {
              return gather(rank, v);
            }};
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] int calls() const noexcept { return calls_; }

 private:
  Values gather(int rank, std::span<const std::int64_t> values) {
    std::unique_lock lock(mutex_);
    if (ended_) throw CommError("gather: expected all ranks, got fewer");
    values_[static_cast<std::size_t>(rank)].assign(values.begin(), values.end());
    const int call = calls_;
    if (++arrived_ == size_) {
      if (call == cut_) ended_ = true;
      all_.clear();
      for (const Values& v : values_) all_.insert(all_.end(), v.begin(), v.end());
      arrived_ = 0;
      ++calls_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return calls_ != call || ended_; });
    if (ended_) throw CommError("gather: expected all ranks, got fewer");
    return all_;
  }

  const int size_, cut_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Values> values_;
  Values all_;
  int arrived_ = 0, calls_ = 0;
  bool ended_ = false;
};

/// Runs f(rank) on a thread for each rank. Returns what they threw: `Type: text`, or nothing.
template <class F> std::vector<std::string> on_ranks(int size, const F& f) {
  std::vector<std::string> thrown(static_cast<std::size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        f(rank);
      } catch (...) {
        const std::exception_ptr e = std::current_exception();
        thrown[static_cast<std::size_t>(rank)] = exception_type(e) + ": " + exception_message(e);
      }
    });
  threads.clear();
  return thrown;
}

struct Ranks {
  explicit Ranks(int size, int cut = -1) : exchange(size, cut) {
    for (int r = 0; r < size; ++r) runs.emplace_back(static_cast<std::uint64_t>(10 + r));
  }
  [[nodiscard]] int size() const { return static_cast<int>(runs.size()); }
  Run& run(int rank) { return runs[static_cast<std::size_t>(rank)]; }
  /// Calls f with a checkpoint of each rank's model and optimizer.
  template <class F> std::vector<std::string> with(const TemporaryFolder& folder, const F& f) {
    return on_ranks(size(), [&](int rank) {
      training::Checkpoint checkpoint({.folder = folder.path(), .ranks = exchange.ranks(rank)},
                                      run(rank).model, run(rank).optimizer);
      f(rank, checkpoint);
    });
  }
  std::deque<Run> runs;
  Exchange exchange;
};

std::size_t weight_bits(const Run& run) {
  const Tensor& w = run.model.fc1.weight;
  return std::hash<std::string>()(std::string(reinterpret_cast<const char*>(w.data<float>()),
                                              static_cast<std::size_t>(w.numel()) * 4));
}

void fill(Run& run, double value) {
  const NoGrad guard;
  run.model.fc1.weight.fill_(value);
}

std::vector<std::string> sorted_names(const TemporaryFolder& folder) {
  std::vector<std::string> names = folder.names();
  std::sort(names.begin(), names.end());
  return names;
}

const std::vector<std::string> kNone3(3);

}  // namespace

TEST_CASE("checkpoint: of three ranks is loaded by one, two, three or four",
          "[training][checkpoint][ranks]") {
  const TemporaryFolder folder;
  Ranks saved(3);
  CHECK(saved.with(folder, [](int, training::Checkpoint& c) {
    c.save();
    c.save();
    check(c.last() == 2, "last");
  }) == kNone3);
  CHECK(sorted_names(folder) == std::vector<std::string>{"step-00000001", "step-00000002"});
  const std::size_t expected = weight_bits(saved.run(0));
  for (int size = 1; size <= 4; ++size) {
    Ranks other(size);
    for (Run& run : other.runs) fill(run, 7);
    CHECK(other.with(folder, [](int, training::Checkpoint& c) {
      check(c.load_latest(), "found");
      check(c.last() == 2, "last");
    }) == std::vector<std::string>(static_cast<std::size_t>(size)));
    for (const Run& run : other.runs) CHECK(weight_bits(run) == expected);
  }
}

TEST_CASE("checkpoint: a rank that cannot save, or is at another step, stops all",
          "[training][checkpoint][ranks][errors]") {
  const TemporaryFolder folder;
  Exchange exchange(3);
  std::vector<nn::Linear> none, one{nn::Linear(2, 2)};
  auto thrown = on_ranks(3, [&](int rank) {
    training::Checkpoint c({.folder = folder.path(), .ranks = exchange.ranks(rank)},
                           rank == 2 ? none : one);
    c.save();
  });
  CHECK(matches(thrown[0],
                "Error: Checkpoint: save: expected all ranks to confirm, got a failure "
                "on rank 2; its error says why"));
  CHECK(thrown[1] == thrown[0]);
  CHECK(matches(thrown[2], "ArgumentError: *got a tree without tensors"));
  Ranks ranks(3);
  thrown = on_ranks(3, [&](int rank) {
    training::Checkpoint c({.folder = folder.path(), .ranks = ranks.exchange.ranks(rank)},
                           ranks.run(rank).loader);
    auto at = ranks.run(rank).loader.begin();
    if (rank == 1) ++at;
    c.save();
  });
  for (const std::string& t : thrown)
    CHECK(
        matches(t, "ArgumentError: Checkpoint: save: expected one step on all ranks, got 1, 2, 1"));
  CHECK(folder.names().empty());
}

TEST_CASE("checkpoint: a rank that ends between any two calls leaves the old one or the new one",
          "[training][checkpoint][ranks][errors]") {
  // Calls of a save: parts can be saved, the step, the random states, everything is written; then
  // rank 0 commits: it has, the number.
  constexpr int kCalls = 6, kWritten = 3;
  for (int cut = 0; cut <= kCalls; ++cut) {
    INFO("call " << cut << " does not return");
    const TemporaryFolder folder;
    Ranks first(2);
    CHECK(first.with(folder, [](int, training::Checkpoint& c) { c.save(); }) ==
          std::vector<std::string>(2));
    Ranks second(2, cut);
    const auto thrown = second.with(folder, [](int, training::Checkpoint& c) { c.save(); });
    CHECK(second.exchange.calls() == std::min(cut + 1, kCalls));
    for (const std::string& t : thrown)
      CHECK(matches(t, cut < kCalls ? "CommError: gather: expected all ranks, got fewer" : ""));
    std::vector<std::string> names{"step-00000001"};
    if (cut > kWritten) names.push_back("step-00000002");
    CHECK(sorted_names(folder) == names);
    Ranks third(1);
    CHECK(third.with(folder, [](int, training::Checkpoint& c) {
      check(c.load_latest(), "found");
    }) == std::vector<std::string>(1));
    CHECK(weight_bits(third.run(0)) == weight_bits((cut > kWritten ? second : first).run(0)));
  }
}

TEST_CASE("checkpoint: a rank that fails before it confirms: nothing is committed",
          "[training][checkpoint][ranks][errors]") {
  const TemporaryFolder folder;
  Ranks ranks(3);
  const auto thrown = ranks.with(folder, [&](int rank, training::Checkpoint& c) {
    if (rank != 1) return c.save();
    ranks.exchange.leave();
    throw Error("rank 1 ends");
  });
  CHECK(matches(thrown[0], "CommError: *"));
  CHECK(matches(thrown[2], "CommError: *"));
  CHECK(folder.names().empty());
}

TEST_CASE("checkpoint: rank 0 fails to write, and all ranks throw",
          "[training][checkpoint][ranks][errors]") {
  int k = 1;
  for (bool saved = false; !saved; k += 5) {
    INFO("call " << k << " of the file system fails");
    const TemporaryFolder folder;
    Ranks ranks(3);
    std::vector<std::string> thrown;
    {
      const Warnings quiet;
      const WithFaults with({.fail_at = k, .error = ENOSPC});
      thrown = ranks.with(folder, [](int, training::Checkpoint& c) { c.save(); });
      saved = faults.calls < k || thrown == kNone3;
    }
    if (saved) continue;
    CHECK(matches(thrown[0], "IoError: *"));
    CHECK(matches(thrown[1], "Error: *failure on rank 0; its error says why"));
    CHECK(thrown[2] == thrown[1]);
    CHECK(folder.names().empty());
    // the ranks can still use each other
    CHECK(ranks.with(folder, [](int, training::Checkpoint& c) { c.save(); }) == kNone3);
  }
  CHECK(k > 20);
}

TEST_CASE("checkpoint: what one rank cannot load changes nothing on the others",
          "[training][checkpoint][ranks][errors]") {
  const TemporaryFolder folder, elsewhere;
  Ranks ranks(2);
  CHECK(ranks.with(folder, [](int, training::Checkpoint& c) { c.save(); }) ==
        std::vector<std::string>(2));
  fill(ranks.run(0), 1);
  const std::size_t bits = weight_bits(ranks.run(0));
  // The folder of rank 1 is another one, as without a shared file system.
  const Warnings warnings;
  auto thrown = on_ranks(2, [&](int rank) {
    training::Checkpoint c({.folder = rank == 0 ? folder.path() : elsewhere.path(),
                            .ranks = ranks.exchange.ranks(rank)},
                           ranks.run(rank).model, ranks.run(rank).optimizer);
    check(c.load_latest(), "found");
  });
  CHECK(matches(thrown[0], "Error: *load: *failure on rank 1; its error says why"));
  CHECK(matches(thrown[1], "IoError: *step-00000001*"));
  CHECK(warnings.texts.size() == 1);
  CHECK(weight_bits(ranks.run(0)) == bits);
  // The model of rank 1 is another one.
  nn::Linear other(2, 2);
  thrown = on_ranks(2, [&](int rank) {
    const training::CheckpointOptions options{.folder = folder.path(),
                                              .ranks = ranks.exchange.ranks(rank)};
    if (rank == 0)
      training::Checkpoint(options, ranks.run(0).model, ranks.run(0).optimizer).load_latest();
    else training::Checkpoint(options, other, ranks.run(1).optimizer).load_latest();
  });
  CHECK(matches(thrown[0], "Error: *load: *failure on rank 1; its error says why"));
  CHECK(matches(thrown[1], "ArgumentError: *model.safetensors*does not fit*"));
  CHECK(weight_bits(ranks.run(0)) == bits);
  // The folders have different files of the same number.
  fill(ranks.run(1), 2);
  training::Checkpoint(elsewhere.path(), ranks.run(1).model, ranks.run(1).optimizer).save();
  CHECK(weight_bits(ranks.run(1)) != bits);
  thrown = on_ranks(2, [&](int rank) {
    training::Checkpoint({.folder = rank == 0 ? folder.path() : elsewhere.path(),
                          .ranks = ranks.exchange.ranks(rank)},
                         ranks.run(rank).model, ranks.run(rank).optimizer)
        .load_latest();
  });
  for (const std::string& t : thrown)
    CHECK(matches(t,
                  "ArgumentError: *expected the same step-00000001 on all ranks, got other "
                  "files than rank 0's on rank 1: *file system that they share"));
  CHECK(weight_bits(ranks.run(0)) == bits);
  // The ranks want different ones.
  thrown = ranks.with(folder, [](int rank, training::Checkpoint& c) { c.load(1 + rank); });
  for (const std::string& t : thrown)
    CHECK(
        matches(t, "ArgumentError: Checkpoint: load: expected one number on all ranks, got 1, 2"));
}

TEST_CASE("checkpoint: each rank gets its random state back, and a new one its own",
          "[training][checkpoint][ranks]") {
  const RandomState before = random_state();
  for (const bool separate : {false, true}) {
    const TemporaryFolder folder;
    Run run;
    // As of rank 0 of 2. Other values are the same on both.
    const auto gather = [&](std::span<const std::int64_t> v) {
      Values all(v.begin(), v.end());
      all.insert(all.end(), v.begin(), v.end());
      if (v.size() == 2 && separate) all[2] += 5;  // the seed of rank 1
      return all;
    };
    set_random_state({.seed = 100, .stream = 9});
    training::Checkpoint({.folder = folder.path(), .ranks = {0, 2, gather}}, run.model).save();
    for (int rank = 0; rank < 4; ++rank) {
      const auto same = [&](std::span<const std::int64_t> v) {
        Values all;
        for (int r = 0; r < 4; ++r) all.insert(all.end(), v.begin(), v.end());
        return all;
      };
      set_random_state({.seed = 1, .stream = 1});
      training::Checkpoint({.folder = folder.path(), .ranks = {rank, 4, same}}, run.model).load(1);
      const std::uint64_t seeds[] = {100, 105, 102, 103};
      CHECK(random_state().seed == (separate ? seeds[rank] : 100));
      CHECK(random_state().stream == 9);
    }
  }
  set_random_state(before);
}

TEST_CASE("checkpoint: ranks that do not fit are refused; a stop on one is a stop on all",
          "[training][checkpoint][ranks][errors]") {
  Run run;
  const auto make = [&](training::CheckpointRanks ranks) {
    training::Checkpoint({.ranks = std::move(ranks)}, run.model);
  };
  CHECK_THROWS_TEXT(ArgumentError, "Checkpoint: expected a rank in [0, size), got rank 2 of 2",
                    make({.rank = 2, .size = 2}));
  CHECK_THROWS_TEXT(ArgumentError, "got rank -1 of 1", make({.rank = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "Checkpoint: expected ranks.gather for 2 ranks, got none",
                    make({.rank = 1, .size = 2}));
  const TemporaryFolder folder;
  Ranks ranks(3);
  CHECK(ranks.with(folder, [](int rank, training::Checkpoint& c) {
    check(c.on_any_rank(rank == 1), "one");
    check(!c.on_any_rank(false), "none");
  }) == kNone3);
}
