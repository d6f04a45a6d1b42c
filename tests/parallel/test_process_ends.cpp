// How a rank's communicator begins and ends, over an engine that does nothing, while the other rank
// has died or is silent.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "process/communicator.hpp"
#include "process/core.hpp"
#include "ranks.hpp"

namespace braid::test {
namespace {

using namespace parallel::process;

/// What an engine is told at its end, and how long that and its calls take.
struct End {
  std::atomic<bool> at_once{false};
  std::chrono::milliseconds takes{0};
  // run() writes and returns when it is not held
  std::atomic<bool> held{false}, entered{false}, wrote{false};
};

/// The engine of rank 0 of 2. Nothing is sent; what it receives are bytes 7.
class NoEngine final : public HostEngine {
 public:
  explicit NoEngine(std::shared_ptr<End> end) : end_(std::move(end)) {}
  ~NoEngine() override { std::this_thread::sleep_for(end_->takes); }
  [[nodiscard]] int rank() const noexcept override { return 0; }
  [[nodiscard]] int size() const noexcept override { return 2; }
  EngineResult run(const BraidEngineCall& call, const BraidEnginePoll&) override {
    end_->entered = true;
    while (end_->held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::int64_t bytes = call.count * call.element_bytes;
    if (call.kind == kBraidAllGather) std::memset(call.out, 7, static_cast<std::size_t>(2 * bytes));
    else std::memset(call.out, 7, static_cast<std::size_t>(bytes));
    end_->wrote = true;
    return {};
  }
  void* start(const BraidEngineCall&, std::string&) override { return nullptr; }
  EngineResult test(void*) override { return {}; }
  std::unique_ptr<HostEngine> split(const std::string&, int, int, int, const BraidEnginePoll&,
                                    EngineResult&) override {
    return nullptr;
  }
  void abort() noexcept override {}
  void leave_at_once() noexcept override { end_->at_once = true; }

 private:
  std::shared_ptr<End> end_;
};

std::shared_ptr<Core> core_of_two(const std::shared_ptr<Store>& store, double timeout,
                                  const std::shared_ptr<End>& end = std::make_shared<End>()) {
  CoreOptions options;
  options.check_collectives = false;
  options.waits_at_end = true;
  options.timeout = timeout;
  options.engine_name = "none";
  options.store = store;
  return std::make_shared<Core>(std::make_unique<NoEngine>(end), std::move(options));
}

}  // namespace

TEST_CASE("process: a rank that has died before the communicator starts is reported",
          "[process][errors]") {
  const auto store = std::make_shared<MemoryStore>();
  store->append("gone", "1 0 d;");
  {  // nobody is called before start(), when the owner has no pointer to the monitor yet
    std::atomic<int> calls{0};
    Monitor monitor(store, 0, 2, 5, [&] { ++calls; }, [&] { ++calls; });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(calls == 0);
  }
  // On one core a new thread may run first.
  cpu_set_t before, one;
  CPU_ZERO(&one);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_SET(::sched_getcpu(), &one);
  (void)::sched_setaffinity(0, sizeof one, &one);
  for (int i = 0; i < 20; ++i) {
    const auto own = std::make_shared<MemoryStore>();
    own->append("gone", "1 0 d;");
    const auto core = core_of_two(own, 5);
    core->start();
    for (int ms = 0; !core->monitor().failed() && ms < 5000; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::string text = text_of([&] {
      if (core->monitor().failed()) std::rethrow_exception(core->monitor().failure());
    });
    core->stop(false);
    CHECK(text == "rank 1 has died: its connection was closed without a farewell");
  }
  (void)::sched_setaffinity(0, sizeof before, &before);
}

TEST_CASE("process: the text of who has gone does not grow with the ranks", "[process][errors]") {
  // full already: by many ranks, or by a hostile one
  for (const bool full : {false, true}) {
    MemoryStore store;
    if (full) store.set("gone", std::string(Store::kMaxValue, ';'));
    for (int rank = 8000; rank >= 10; --rank)
      report_leaving(store, rank, static_cast<std::uint64_t>(100 + rank % 100));
    for (const int rank : {3, 4}) report_leaving(store, rank, 99);
    for (const int rank : {7, 8}) report_death(store, rank);
    CHECK(store.get("gone")->value == (full ? "0 0 l;7 0 d;" : "3 99 l;7 0 d;"));
  }
}

TEST_CASE("process: an engine that waits at its end for a rank that has stopped is left at once",
          "[process][errors][once]") {
  using std::chrono::milliseconds;
  struct Row {
    int reports, ends;  // ms for which rank 1 reports, and when it says that it ends; -1: never
    int takes;          // ms of the engine's end
    const char* text;
  };
  const Row rows[] = {
      {0, 0, 0, ""},
      {900, 900, 0, ""},  // it computes for longer than a collective may take
      {0, -1, 0, "rank 1 has not ended as the others, nor reported for 0.3 s"},
      {600, -1, 0, "rank 1 has not ended as the others, nor reported for 0.3 s"},
      {0, 0, 2500, "rank 0: the end of none, which all ranks have begun, is not complete"},
  };
  for (const auto& [reports, ends, takes, text] : rows) {
    INFO(reports << " " << ends << " " << takes);
    const auto store = std::make_shared<MemoryStore>();
    const auto end = std::make_shared<End>();
    end->takes = milliseconds(takes);
    const auto core = core_of_two(store, 0.3, end);
    core->start();
    std::thread other([&store, reports = reports, ends = ends] {
      for (int ms = 0; ms <= reports; ms += 20) {
        store->set("progress/1", "1 1 barrier");
        std::this_thread::sleep_for(milliseconds(20));
      }
      if (ends < 0) return;
      store->set("ends/1", "");
      store->add("ends", 1);
    });
    const auto begin = Clock::now();
    core->stop(true);
    const auto took = Clock::now() - begin;
    other.join();
    const std::exception_ptr failure = core->monitor().failure();
    const std::string got = failure ? exception_message(failure) : "";
    INFO(got);
    CHECK((got.starts_with(text) && got.empty() == (*text == '\0')));
    CHECK(end->at_once == (ends < 0));
    CHECK(took < milliseconds(2400));
    CHECK(took > milliseconds(reports - 50));
  }
}

TEST_CASE("process: views are not written once their call has failed", "[process][errors][once]") {
  const auto end = std::make_shared<End>();
  const auto core = core_of_two(std::make_shared<MemoryStore>(), 2, end);
  core->start();
  EngineCommunicator ranks(core);
  std::vector<float> values(100, 1.0f);
  const parallel::BufferView view{values.data(), 100, DType::float32, Device()};
  end->held = true;  // the engine does not return when it is stopped
  const auto wait_for = [](const std::atomic<bool>& what) {
    for (int ms = 0; !what && ms < 5000; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  std::thread fails([&] {
    wait_for(end->entered);
    ranks.abort_with("enough");
  });
  CHECK_THROWS_AS(ranks.all_reduce(std::span(&view, 1)), CommAbortedError);
  fails.join();
  CHECK(!end->wrote);
  end->held = false;
  wait_for(end->wrote);
  ranks.shut_down(false);
  CHECK(end->wrote);
  CHECK(values == std::vector<float>(100, 1.0f));
}

TEST_CASE("process: a failure does not end the wait for a function that runs",
          "[process][errors][once]") {
  const auto core = core_of_two(std::make_shared<MemoryStore>(), 2);
  core->start();
  EngineCommunicator ranks(core);
  std::atomic<bool> runs{false};
  ranks
      .start_function([&] {
        runs = true;
        ranks.abort_with("enough");
        std::this_thread::sleep_for(std::chrono::milliseconds(1300));
        runs = false;
      })
      .wait();
  CHECK(!runs);
  CHECK_THROWS_AS(ranks.check(), CommAbortedError);
  ranks.shut_down(false);
}

}  // namespace braid::test
