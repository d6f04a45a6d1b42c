// Runs a grid: on the calling thread with the checker, or on several host threads without it.
#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "simt/checker.hpp"
#include "simt/profiler.hpp"
#include "simt/scheduler.hpp"

namespace braid::simt {

namespace {

std::mutex stats_mutex;
Stats& total() {
  static Stats s;
  return s;
}

[[noreturn]] void refuse(const Launch& launch, const std::string& what) {
  Error::Details details = details_at(Finding::bad_launch, launch.where);
  details.kernel = launch.name ? launch.name : kernel_name(launch.kernel);
  throw Error(str("launch of ", details.kernel, ": ", what, ", at ", to_string(launch.where)),
              std::move(details));
}

void run_blocks(const Launch& launch, const Closure& closure, const Config& config,
                Checker* checker, Profiler* profiler) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  Scheduler& scheduler = Scheduler::of_this_thread();
  if (checker) {
    struct End {
      Checker* checker;
      ~End() { checker->grid_end(); }
    };
    scheduler.expose(launch, closure, config);
    checker->grid_begin(scheduler, profiler);
    const End end{checker};
    scheduler.run(launch, closure, config, checker, next, failed);
    return;
  }
  const std::uint64_t blocks =
      static_cast<std::uint64_t>(launch.grid.x) * launch.grid.y * launch.grid.z;
  const auto workers = std::min<std::uint64_t>(static_cast<std::uint64_t>(config.workers), blocks);
  if (workers <= 1) {
    scheduler.run(launch, closure, config, nullptr, next, failed);
    return;
  }
  std::mutex mutex;
  std::exception_ptr first;
  const auto work = [&] {
    try {
      Scheduler::of_this_thread().run(launch, closure, config, nullptr, next, failed);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failed.exchange(true)) first = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(workers));
  for (std::uint64_t i = 1; i < workers; ++i) {
    try {
      threads.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads: the existing ones do the work
      break;
    }
  }
  work();
  for (std::thread& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace

std::mutex& grid_mutex() {
  static std::mutex* mutex = new std::mutex;
  return *mutex;
}

void add_stats(const Stats& more) {
  const std::lock_guard lock(stats_mutex);
  Stats& s = total();
  s.grids += more.grids;
  s.blocks += more.blocks;
  s.threads += more.threads;
  s.switches += more.switches;
  s.barriers += more.barriers;
  s.warp_ops += more.warp_ops;
  s.mma += more.mma;
  s.accesses += more.accesses;
}

Stats stats() {
  const std::lock_guard lock(stats_mutex);
  return total();
}

bool valid_launch(const Launch& launch) noexcept {
  const auto threads = static_cast<std::uint64_t>(launch.block.x) * launch.block.y * launch.block.z;
  return threads > 0 && launch.block.x <= 1024 && launch.block.y <= 1024 && launch.block.z <= 64 &&
         threads <= 1024 && launch.grid.x > 0 && launch.grid.y > 0 && launch.grid.z > 0 &&
         launch.grid.x <= 0x7fffffffu && launch.grid.y <= 65535 && launch.grid.z <= 65535 &&
         launch.shared_bytes <= config().shared_limit;
}

void run_grid(const Launch& launch, const Closure& closure) {
  const Config now = config();
  if (!valid_launch(launch)) {
    const auto triple = [](const dim3& d) { return str("(", d.x, ",", d.y, ",", d.z, ")"); };
    refuse(launch,
           str("expected a block of 1 to 1024 threads with z <= 64, a grid up to "
               "(2147483647,65535,65535) and at most ",
               now.shared_limit, " bytes of shared memory, got block ", triple(launch.block),
               ", grid ", triple(launch.grid), ", ", launch.shared_bytes, " bytes"));
  }
  if (Scheduler::running()) refuse(launch, "expected a call from the host, got one from a kernel");
  add_stats({.grids = 1});
  if (!now.checks || !kernels_are_instrumented()) {
    run_blocks(launch, closure, now, nullptr, nullptr);
    return;
  }
  const std::lock_guard lock(grid_mutex());
  run_blocks(launch, closure, now, &Checker::instance(), Profiler::current());
}

}  // namespace braid::simt
