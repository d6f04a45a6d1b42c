// How a rank's communicator begins and ends, over an engine that does nothing, while the other rank
// has died or is silent.
#include <sched.h>

#include <atomic>

#include "process/core.hpp"
#include "ranks.hpp"

namespace braid::test {
namespace {

using namespace parallel::process;

/// The engine of rank 0 of 2. Nothing is sent.
class NoEngine final : public HostEngine {
 public:
  [[nodiscard]] int rank() const noexcept override { return 0; }
  [[nodiscard]] int size() const noexcept override { return 2; }
  EngineResult run(const BraidEngineCall&, const BraidEnginePoll&) override { return {}; }
  void* start(const BraidEngineCall&, std::string&) override { return nullptr; }
  EngineResult test(void*) override { return {}; }
  std::unique_ptr<HostEngine> split(const std::string&, int, int, int, const BraidEnginePoll&,
                                    EngineResult&) override {
    return nullptr;
  }
  void abort() noexcept override {}
};

std::shared_ptr<Core> core_of_two(const std::shared_ptr<Store>& store, double timeout) {
  CoreOptions options;
  options.timeout = timeout;
  options.engine_name = "none";
  options.store = store;
  return std::make_shared<Core>(std::make_unique<NoEngine>(), std::move(options));
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

}  // namespace braid::test
