// One worker thread a device, kept for the process: it spins for a moment after each job, then sleeps.
#include <braid/core/worker.hpp>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>

namespace braid {
namespace {

constexpr int kSpins = 4000;  // about 20 us: longer than the gap between two phases of a step, shorter than a time slice

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Waits until the word differs from `old`.
void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t old) noexcept {
  for (int i = 0; i < kSpins; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    pause();
  }
  word.wait(old, std::memory_order_acquire);
}

struct Job {
  void (*function)(void*, std::size_t) = nullptr;
  void* context = nullptr;
  std::size_t index = 0;
  ThreadState state;
  void run() const noexcept {
    thread_state() = state;
    function(context, index);
  }
};

class Worker {
 public:
  Worker() { std::thread([this] { loop(); }).detach(); }
  /// False if somebody else's job is running here.
  bool try_start(const Job& job) {
    if (!claimed_.try_lock()) return false;
    job_ = job;
    posted_.fetch_add(1, std::memory_order_release);
    posted_.notify_one();
    return true;
  }
  void join() {
    const std::uint32_t target = posted_.load(std::memory_order_relaxed);
    for (std::uint32_t done = done_.load(std::memory_order_acquire); done != target; done = done_.load(std::memory_order_acquire)) wait_while(done_, done);
    claimed_.unlock();
  }

 private:
  void loop() {
    for (std::uint32_t seen = 0;; ++seen) {
      wait_while(posted_, seen);
      job_.run();
      done_.fetch_add(1, std::memory_order_release);
      done_.notify_one();
    }
  }
  std::mutex claimed_;
  Job job_;
  std::atomic<std::uint32_t> posted_{0}, done_{0};
};

/// The worker of a device. Never destroyed: its thread may be waiting while the process ends.
Worker& worker(Device device) {
  constexpr int kTypes = 2, kDevices = 64;
  static std::atomic<Worker*> workers[kTypes][kDevices];
  static std::mutex making;
  std::atomic<Worker*>& slot = workers[static_cast<int>(device.type())][device.index()];
  if (Worker* w = slot.load(std::memory_order_acquire)) return *w;
  const std::lock_guard lock(making);
  if (!slot.load(std::memory_order_relaxed)) slot.store(new Worker, std::memory_order_release);
  return *slot.load(std::memory_order_relaxed);
}

}  // namespace

void run_on_devices(std::span<const Device> devices, void (*job)(void*, std::size_t), void* context) {
  if (devices.empty()) return;
  constexpr std::size_t kInline = 16;
  Worker* inline_workers[kInline];
  std::vector<Worker*> more(devices.size() > kInline ? devices.size() : 0);
  Worker** const workers = more.empty() ? inline_workers : more.data();
  std::vector<std::thread> extra;  // for workers that are busy: with a job that waits for this call, or with another caller's
  const ThreadState mine = thread_state();
  std::size_t started = 1;
  const auto join = [&] {
    for (std::size_t i = 1; i < started; ++i)
      if (workers[i]) workers[i]->join();
    for (std::thread& t : extra) t.join();
  };
  try {
    for (; started < devices.size(); ++started) {
      const Job work{job, context, started, mine};
      Worker& w = worker(devices[started]);
      workers[started] = w.try_start(work) ? &w : nullptr;
      if (!workers[started]) extra.emplace_back([work] { work.run(); });
    }
  } catch (...) {  // no thread could be made: wait for those that run, then say so
    join();
    throw;
  }
  job(context, 0);
  thread_state() = mine;
  join();
}

}  // namespace braid
