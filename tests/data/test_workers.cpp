#include <atomic>
#include <chrono>
#include <thread>

#include "items.hpp"
#include "support/errors.hpp"

using namespace braid;
using namespace braid::test;

namespace {

using Clock = std::chrono::steady_clock;

/// Item i is [i]; some items can fail, or be slow.
struct Items {
  struct Shared {
    std::atomic<int> failures{0};  // how many calls of get(bad) still fail
    std::atomic<int> calls{0};
    std::atomic<bool> grad_enabled{false};
  };
  std::int64_t n = 0;
  std::int64_t bad = -1;
  int kind = 0;  // which exception is thrown
  std::chrono::microseconds delay{0};
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();

  [[nodiscard]] std::int64_t size() const { return n; }
  [[nodiscard]] Tensor get(std::int64_t i) const {
    ++shared->calls;
    if (grad_enabled()) shared->grad_enabled = true;
    if (delay.count() > 0) std::this_thread::sleep_for(delay * (i % 3 + 1));
    if (i == bad && shared->failures.fetch_sub(1) > 0) {
      if (kind == 0) throw ShapeError("the item is bent");
      if (kind == 1) throw std::bad_alloc();
      throw 7;
    }
    return full({1}, static_cast<double>(i), {.dtype = DType::int64});
  }
};

/// Returns the exception nested in e, by type and text.
std::string nested(const std::exception& e) {
  try {
    std::rethrow_if_nested(e);
  } catch (...) {
    return exception_type(std::current_exception()) + ": " +
           exception_message(std::current_exception());
  }
  return "none";
}

}  // namespace

TEST_CASE("workers: order and content do not depend on them", "[data][workers]") {
  data::DataLoader alone(Items{.n = 103}, {.batch_size = 10, .shuffle = true, .seed = 5});
  const auto first = batches_of(alone), second = batches_of(alone);
  CHECK(first.size() == 11);
  for (const int workers : {1, 2, 3, 8, 40}) {
    data::DataLoader loader(Items{.n = 103, .delay = std::chrono::microseconds(20)},
                            {.batch_size = 10, .shuffle = true, .workers = workers, .seed = 5});
    CHECK(batches_of(loader) == first);
    CHECK(batches_of(loader) == second);
    loader.set_epoch(0);
    CHECK(batches_of(loader) == first);
  }
}

TEST_CASE("workers: nothing is recorded in them", "[data][workers]") {
  for (const int workers : {0, 2}) {
    Items items{.n = 20};
    data::DataLoader loader(items, {.batch_size = 4, .workers = workers});
    for (auto& batch : loader) CHECK_FALSE(batch.requires_grad());
    CHECK(items.shared->calls == 20);
    CHECK_FALSE(items.shared->grad_enabled);
    CHECK(grad_enabled());
  }
}

TEST_CASE("workers: batches are made ahead, but not without bound", "[data][workers]") {
  Items items{.n = 1000};
  data::DataLoader loader(items, {.batch_size = 1, .workers = 2});
  auto at = loader.begin();
  for (int i = 0; i < 200 && items.shared->calls < 5; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(items.shared->calls == 5);  // one taken, 2 × 2 prefetched
  ++at;
  for (int i = 0; i < 200 && items.shared->calls < 6; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(items.shared->calls == 6);
}

TEST_CASE("workers: a failing item is a WorkerError that names it; it can be tried again",
          "[data][workers][errors]") {
  const char* originals[] = {"ShapeError: the item is bent", "std::bad_alloc: std::bad_alloc",
                             "unknown: unknown exception"};
  for (const int workers : {0, 1, 3}) {
    for (const int kind : {0, 1, 2}) {
      for (const std::int64_t bad : {0, 7, 19}) {
        INFO(workers << " workers, kind " << kind << ", item " << bad);
        Items items{.n = 20, .bad = bad, .kind = kind};
        items.shared->failures = 2;
        data::DataLoader loader(items, {.batch_size = 4, .workers = workers});
        loader.set_epoch(3);
        int failures = 0;
        const auto guarded = [&](const auto& f) {
          while (true) {
            try {
              return f();
            } catch (const WorkerError& e) {
              ++failures;
              CHECK(std::string(e.what()) == str("DataLoader: get(", bad, ") failed in batch ",
                                                 bad / 4, " of epoch 3: ", originals[kind]));
              CHECK(nested(e) == originals[kind]);
              CHECK(exception_type(std::current_exception()) == "WorkerError");
            }
          }
        };
        Ids seen;
        auto at = guarded([&] { return loader.begin(); });
        while (at != loader.end()) {
          for (const std::int64_t i : ids(*at)) seen.push_back(i);
          guarded([&] { ++at; });
        }
        CHECK(failures == 2);
        CHECK(seen == upto(20));
        CHECK(loader.epoch() == 4);
      }
    }
  }
}

TEST_CASE("workers: items that cannot be joined are a WorkerError too", "[data][workers][errors]") {
  for (const int workers : {0, 2}) {
    data::DataLoader loader(Made{4, [](std::int64_t i) { return Tensor(zeros({i})); }},
                            {.batch_size = 2, .workers = workers});
    try {
      for ([[maybe_unused]] auto& batch : loader) {}
      FAIL("nothing was thrown");
    } catch (const WorkerError& e) {
      CHECK(std::string(e.what()).starts_with(
          "DataLoader: making batch 0 of epoch 0 failed: ShapeError: collate: "));
      CHECK(nested(e).starts_with(
          "ShapeError: collate: expected shape [0] as in item 0, got [1] in item 1"));
    }
  }
}

TEST_CASE("workers: leaving early joins them at once and leaks nothing", "[data][workers]") {
  const std::size_t before = memory_stats(Device("cpu")).in_use;
  const auto start = Clock::now();
  for (int round = 0; round < 300; ++round) {
    data::DataLoader loader(Items{.n = 64}, {.batch_size = 4, .workers = 1 + round % 3});
    int batches = 0;
    for ([[maybe_unused]] auto& batch : loader)
      if (++batches > round % 5) break;
  }
  CHECK(Clock::now() - start < std::chrono::seconds(30));
  CHECK(memory_stats(Device("cpu")).in_use == before);

  Items slow{.n = 1'000'000, .delay = std::chrono::milliseconds(2)};
  const auto then = Clock::now();
  {
    data::DataLoader loader(slow, {.batch_size = 10'000, .workers = 2});  // a batch would take 40 s
    data::detail::Epoch epoch(
        std::make_shared<const data::detail::BatchMakerOf<Items>>(slow, false),
        data::detail::plan_epoch(loader.options(), data::detail::sampler_of(loader.options()),
                                 slow.n, 0));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  CHECK(Clock::now() - then < std::chrono::seconds(1));
}

TEST_CASE("workers: an exception in the loop's body joins them", "[data][workers]") {
  data::DataLoader loader(Items{.n = 100}, {.batch_size = 5, .workers = 2});
  int seen = 0;
  const auto loop = [&] {
    for ([[maybe_unused]] auto& batch : loader)
      if (++seen == 3) throw Error("enough");
  };
  CHECK_THROWS_TEXT(Error, "enough", loop());
  CHECK(batches_of(loader).size() == 20);
}
