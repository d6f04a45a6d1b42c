#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>

#include "cpu/runtime/parallel.hpp"
#include "cpu/runtime/pinning.hpp"
#include "cpu/runtime/pool.hpp"
#include "cpu/runtime/scratch.hpp"
#include "support/check.hpp"

namespace {

using braid::Device;
using braid::cpu::parallel_for;
using braid::cpu::Pinning;
using braid::cpu::Pool;

class Threads {  // sets the number of threads for a scope
 public:
  explicit Threads(int count) : before_(braid::num_threads()) { braid::set_num_threads(count); }
  ~Threads() { braid::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

class Environment {  // sets a variable for a scope
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old, had_ = true;
    ::setenv(name, value, 1);
  }
  ~Environment() {
    if (had_) {
      ::setenv(name_, old_.c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

braid::Stream& stream() { return braid::current_stream(Device("cpu")); }

// Checks that each tile runs exactly once, on any thread.
void check_covers(std::int64_t tiles) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(tiles));
  auto tile = [&](std::int64_t i) { ++seen.at(static_cast<std::size_t>(i)); };
  parallel_for(stream(), tiles, tile);
  for (const auto& count : seen) REQUIRE(count == 1);
}

}  // namespace

TEST_CASE("pool: every tile runs once, for any number of threads", "[kernels][pool]") {
  for (int threads : {1, 2, 3, 5, 8, 2, 1}) {
    const Threads scope(threads);
    for (std::int64_t tiles : {0, 1, 2, 3, 4, 5, 7, 8, 9, 100, 1000}) check_covers(tiles);
  }
}

TEST_CASE("pool: helpers take part", "[kernels][pool]") {
  const Threads scope(3);
  std::atomic<int> waiting{0};
  // Each tile waits for the others, so the three run on three threads. A helper may be late, but it
  // must start.
  auto tile = [&](std::int64_t) {
    ++waiting;
    while (waiting < 3) std::this_thread::yield();
  };
  parallel_for(stream(), 3, tile);
  CHECK(waiting == 3);
}

TEST_CASE("pool: a nested loop runs on the thread of its tile", "[kernels][pool]") {
  const Threads scope(4);
  std::atomic<int> inner{0}, foreign{0};
  auto outer = [&](std::int64_t) {
    const auto self = std::this_thread::get_id();
    auto tile = [&](std::int64_t) {
      ++inner;
      foreign += std::this_thread::get_id() != self;
    };
    parallel_for(stream(), 10, tile);
  };
  parallel_for(stream(), 12, outer);
  CHECK(inner == 120);
  CHECK(foreign == 0);
}

TEST_CASE("pool: an exception of a tile reaches the caller after all have left",
          "[kernels][pool][errors]") {
  for (int threads : {1, 2, 5}) {
    const Threads scope(threads);
    for (int round = 0; round < 50; ++round)
      for (std::int64_t bad : {std::int64_t{0}, std::int64_t{3}, std::int64_t{63}}) {
        std::atomic<int> inside{0}, ran{0};
        auto tile = [&](std::int64_t i) {
          ++inside;
          ++ran;
          if (i == bad) {
            --inside;
            throw braid::IndexError("tile " + std::to_string(i));
          }
          --inside;
        };
        try {
          parallel_for(stream(), 64, tile);
          FAIL("expected an exception");
        } catch (const braid::IndexError& error) {
          CHECK(error.what() == "tile " + std::to_string(bad));
        }
        CHECK(inside == 0);
        CHECK(ran >= 1);
        if (round == 0) check_covers(100);  // the pool still works
      }
  }
}

TEST_CASE("pool: one exception of many, of any type", "[kernels][pool][errors]") {
  const Threads scope(4);
  auto numbers = [](std::int64_t i) { throw static_cast<int>(i); };
  for (int round = 0; round < 20; ++round) {
    int caught = -1;
    try {
      parallel_for(stream(), 16, numbers);
    } catch (int i) {
      caught = i;
    }
    CHECK(caught >= 0);
    CHECK(caught < 16);
  }
}

TEST_CASE("pool: several host threads use one device at once", "[kernels][pool][stress]") {
  const Threads scope(3);
  std::atomic<std::int64_t> total{0};
  std::vector<std::thread> hosts;
  for (int h = 0; h < 4; ++h)
    hosts.emplace_back([&, h] {
      std::mt19937 random(static_cast<unsigned>(h));
      for (int round = 0; round < 500; ++round) {
        const std::int64_t tiles = random() % 20;
        std::vector<int> out(static_cast<std::size_t>(tiles), 0);  // not atomic: a race shows
        auto tile = [&](std::int64_t i) {
          out[static_cast<std::size_t>(i)] += static_cast<int>(i) + 1;
          if (round % 50 == 49 && i == 5) throw std::runtime_error("planned");
        };
        try {
          parallel_for(stream(), tiles, tile);
          for (std::int64_t i = 0; i < tiles; ++i)
            if (out[static_cast<std::size_t>(i)] == i + 1) ++total;
          total -= tiles;
        } catch (const std::runtime_error&) {}
      }
    });
  for (std::thread& host : hosts) host.join();
  CHECK(total == 0);
}

TEST_CASE("pool: the number of threads changes while others compute", "[kernels][pool][stress]") {
  const Threads scope(2);
  std::atomic<bool> done{false};
  std::thread changer([&] {
    for (int i = 0; i < 200; ++i) braid::set_num_threads(1 + i % 5);
    done = true;
  });
  while (!done) check_covers(37);
  changer.join();
}

TEST_CASE("pool: helpers sleep and wake", "[kernels][pool]") {
  const Threads scope(3);
  for (int round = 0; round < 20; ++round) {
    check_covers(50);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // longer than the helpers spin
  }
}

TEST_CASE("pool: is made, used and destroyed", "[kernels][pool]") {
  const Pinning pinning(1);
  for (int round = 0; round < 20; ++round) {
    Pool pool(0, pinning);
    std::atomic<int> sum{0};
    pool.run(
        1 + round % 4, 10,
        [](void* context, std::int64_t i) {
          *static_cast<std::atomic<int>*>(context) += static_cast<int>(i);
        },
        &sum);
    CHECK(sum == 45);
  }
}

TEST_CASE("pool: pinning follows the affinity mask", "[kernels][pool]") {
  std::thread([] {  // a new thread, since its mask changes
    {
      const Environment off("BRAID_PIN", "0");
      CHECK_FALSE(Pinning(2).on());
    }
    const Environment on("BRAID_PIN", "1");
    const Pinning pinning(2);
    REQUIRE(pinning.on());
    cpu_set_t mask;
    REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);
    CHECK(pinning.cores() == CPU_COUNT(&mask));
    std::set<int> cores;
    for (int device = 0; device < 2; ++device)
      for (int thread = 0; thread < 3; ++thread) {
        const int core = pinning.core_of(device, thread, 3);
        CHECK(CPU_ISSET(core, &mask));
        cores.insert(core);
      }
    CHECK(static_cast<int>(cores.size()) == std::min(6, pinning.cores()));

    Pool pool(1, pinning);
    pool.pin_caller(2);
    REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);
    CHECK(CPU_COUNT(&mask) == 1);
    CHECK(CPU_ISSET(pinning.core_of(1, 0, 2), &mask));
    struct Seen {
      std::atomic<int> entered{0};
      std::atomic<int> wrong{0};
      const Pinning& pinning;
    } seen{{}, {}, pinning};
    const auto tile = [](void* context, std::int64_t) {
      auto& s = *static_cast<Seen*>(context);
      ++s.entered;
      while (s.entered < 2) std::this_thread::yield();
      cpu_set_t own;
      if (sched_getaffinity(0, sizeof own, &own) != 0 || CPU_COUNT(&own) != 1) ++s.wrong;
      if (!CPU_ISSET(s.pinning.core_of(1, 0, 2), &own) &&
          !CPU_ISSET(s.pinning.core_of(1, 1, 2), &own))
        ++s.wrong;
    };
    pool.run(2, 2, tile, &seen);
    CHECK(seen.wrong == 0);
  })
      .join();
}

TEST_CASE("pool: a wrong BRAID_PIN is refused", "[kernels][pool][errors]") {
  const Environment wrong("BRAID_PIN", "yes");
  try {
    const Pinning pinning(1);
    FAIL("expected DeviceError");
  } catch (const braid::DeviceError& error) {
    CHECK(std::string(error.what()) == "BRAID_PIN: expected 0 or 1, got 'yes'");
  }
}

TEST_CASE("scratch: grows, is aligned and belongs to its thread", "[kernels][pool]") {
  void* mine = braid::cpu::scratch(1000);
  CHECK(reinterpret_cast<std::uintptr_t>(mine) % 64 == 0);
  CHECK(braid::cpu::scratch(500) == mine);
  auto* large = static_cast<char*>(braid::cpu::scratch(1 << 20));
  large[0] = large[(1 << 20) - 1] = 7;
  void* other = nullptr;
  std::thread([&] { other = braid::cpu::scratch(1 << 20); }).join();
  CHECK(other != large);
  CHECK(braid::cpu::scratch(1) == large);
}
