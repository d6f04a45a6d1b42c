// One worker thread per device, kept until the process exits. It spins for a moment after each job,
// then sleeps.
#include <braid/core/internal/worker.hpp>

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/step_capture.hpp>

namespace braid {
namespace {

// about 20 us: longer than the gap between two phases of a step, shorter than a time slice
constexpr int kSpins = 4000;

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
  Worker(Device device, std::uint32_t process) : device_(device) { start(process); }
  /// Starts the thread: for the first job, and again in a forked child, which inherits no threads.
  void start(std::uint32_t process) {
    claimed_.store(false, std::memory_order_relaxed);
    posted_.store(0, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    const std::string name = device_.str();  // what may throw comes before the thread
    std::thread thread([this] { loop(); });
#if defined(__linux__)
    ::pthread_setname_np(thread.native_handle(), name.c_str());  // for debuggers and top
#endif
    thread.detach();
    process_.store(process, std::memory_order_release);
  }
  /// The process that the thread runs in, as a count of forks.
  [[nodiscard]] std::uint32_t process() const noexcept {
    return process_.load(std::memory_order_acquire);
  }
  /// Returns false if the worker is busy. Otherwise the caller posts a job, or frees the worker.
  bool claim() noexcept {
    // Waits a moment for a job that is about to end, because that costs less than another thread.
    for (int i = 0; claimed_.exchange(true, std::memory_order_acquire); ++i) {
      if (i == kSpins / 4) return false;
      pause();
    }
    return true;
  }
  void free() noexcept { claimed_.store(false, std::memory_order_release); }
  /// Returns the number of the job for join().
  std::uint32_t post(const Job& job) noexcept {
    job_ = job;
    const std::uint32_t number = posted_.fetch_add(1, std::memory_order_release) + 1;
    posted_.notify_one();
    return number;
  }
  void join(std::uint32_t number) const noexcept {
    // Not only ==, because jobs of later callers may be done already too.
    for (std::uint32_t done = done_.load(std::memory_order_acquire);
         static_cast<std::int32_t>(done - number) < 0; done = done_.load(std::memory_order_acquire))
      wait_while(done_, done);
  }

 private:
  void loop() {
    for (std::uint32_t seen = 0;; ++seen) {
      wait_while(posted_, seen);
      if (seen == 0) own_thread();
      job_.run();
      // before done_ changes, so that the thread that joins can start its next job immediately
      claimed_.store(false, std::memory_order_release);
      done_.fetch_add(1, std::memory_order_release);
      done_.notify_all();
    }
  }
  void own_thread() noexcept {
    try {
      device_context(device_).backend->own_thread();
    } catch (...) {  // the job will report that the device does not exist
    }
  }
  const Device device_;
  std::atomic<bool> claimed_{false};
  Job job_;
  std::atomic<std::uint32_t> posted_{0}, done_{0}, process_{0};
};

struct Started {
  Worker* worker = nullptr;  // null: the job has a separate thread
  std::uint32_t number = 0;
};

/// Threads for jobs whose worker is busy, with a job that waits for this call or with another
/// caller's. They wait until all of them exist.
class Extra {
 public:
  void add(const Job& job) {
    threads_.emplace_back([this, job] {
      word_.wait(kWait, std::memory_order_acquire);
      if (word_.load(std::memory_order_acquire) == kRun) job.run();
    });
  }
  void run() noexcept { set(kRun); }
  ~Extra() {
    if (word_.load(std::memory_order_relaxed) == kWait) set(kEnd);
    for (std::thread& t : threads_) t.join();
  }

 private:
  static constexpr int kWait = 0, kRun = 1, kEnd = 2;
  void set(int value) noexcept {
    if (threads_.empty()) return;
    word_.store(value, std::memory_order_release);
    word_.notify_all();
  }
  std::atomic<int> word_{kWait};
  std::vector<std::thread> threads_;
};

constexpr int kTypes = 2, kDevices = 64;
std::atomic<Worker*> workers[kTypes][kDevices];
std::mutex making;
std::atomic<std::uint32_t> forks{0};  // number of forks from the first process to this one

void count_forks() {
  ::pthread_atfork([] { making.lock(); }, [] { making.unlock(); },
                   [] {
                     forks.fetch_add(1, std::memory_order_relaxed);
                     making.unlock();
                   });
}

/// Returns the worker of a device. Never destroyed, because its thread may wait while the process
/// exits.
Worker& worker(Device device) {
  std::atomic<Worker*>& slot = workers[static_cast<int>(device.type())][device.index()];
  Worker* w = slot.load(std::memory_order_acquire);
  if (w && w->process() == forks.load(std::memory_order_relaxed)) return *w;
  static std::once_flag counting;
  std::call_once(counting, count_forks);
  const std::lock_guard lock(making);
  const std::uint32_t process = forks.load(std::memory_order_relaxed);
  w = slot.load(std::memory_order_relaxed);
  if (!w) slot.store(w = new Worker(device, process), std::memory_order_release);
  else if (w->process() != process) w->start(process);
  return *w;
}

}  // namespace

void run_on_devices(std::span<const Device> devices, void (*job)(void*, std::size_t),
                    void* context) {
  if (devices.empty()) return;
  if (devices.size() > 1)
    detail::StepCapture::refuse("captured_step", "a step on one device, got one on several");
  constexpr std::size_t kInline = 16;
  Started inline_started[kInline];
  std::vector<Started> more(devices.size() > kInline ? devices.size() : 0);
  Started* const jobs = more.empty() ? inline_started : more.data();
  const ThreadState mine = thread_state();
  // All threads exist before any job starts, because jobs may wait for each other.
  Extra extra;
  std::size_t found = 1;
  try {
    for (; found < devices.size(); ++found) {
      Worker& w = worker(devices[found]);
      if (w.claim()) jobs[found].worker = &w;
      else extra.add({job, context, found, mine});
    }
  } catch (...) {  // no thread could be created
    for (std::size_t i = 1; i < found; ++i)
      if (jobs[i].worker) jobs[i].worker->free();
    throw;
  }
  for (std::size_t i = 1; i < devices.size(); ++i)
    if (jobs[i].worker) jobs[i].number = jobs[i].worker->post({job, context, i, mine});
  extra.run();
  job(context, 0);
  thread_state() = mine;
  for (std::size_t i = 1; i < devices.size(); ++i)
    if (jobs[i].worker) jobs[i].worker->join(jobs[i].number);
}

}  // namespace braid
