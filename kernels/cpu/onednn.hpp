#pragma once
// Shared by all oneDNN calls: the engine, an orderly shutdown, and execution on one thread.
// Included by the files that see oneDNN's headers (braid_onednn_sources).
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <thread>

namespace braid::cpu::onednn {

// oneDNN frees the code that it generated when the process ends, while static destructors or other
// threads may still compute. So an exit handler that runs before that closes the library and waits
// for the calls in progress; later calls use Braid's own loops. Handlers run in the reverse order
// of their registration, so ours is registered after oneDNN's own, that is, after the first call of
// each kind.
inline std::atomic<bool> closed{false};
inline std::atomic<int> inside{0};
inline std::atomic<unsigned> kinds_seen{0};
// the process whose threads `inside` counts; a forked child has none of these threads
inline std::atomic<::pid_t> counted_in{0};

inline void close_library() noexcept {
  closed = true;
  while (inside != 0 && counted_in == ::getpid()) std::this_thread::yield();
}

class Visit {
 public:
  Visit() noexcept : open_(enter()) {}
  ~Visit() {
    if (open_) --inside;
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  [[nodiscard]] bool open() const noexcept { return open_; }
  /// `kind` is below 32, one for each kind of generated code: products use 0 to 15, convolutions 16
  /// to 18.
  void saw(unsigned kind) noexcept {
    const unsigned bit = 1u << kind;
    if ((kinds_seen.load(std::memory_order_relaxed) & bit) == 0 &&
        (kinds_seen.fetch_or(bit) & bit) == 0) {
      counted_in = ::getpid();
      std::atexit(&close_library);
    }
  }

 private:
  static bool enter() noexcept {
    ++inside;
    if (!closed) return true;
    --inside;
    return false;
  }
  bool open_;
};

// oneDNN uses OpenMP's threads. They spin, and two of them on one core run a hundred times slower,
// so oneDNN computes on the calling thread alone. The thread count that the program had set on this
// thread is restored afterwards. The functions are looked up by name, because oneDNN may be built
// without OpenMP.
struct OpenMp {
  int (*count)() = nullptr;
  void (*set_count)(int) = nullptr;
};

inline const OpenMp& openmp() noexcept {
  static const OpenMp functions = [] {
    OpenMp found;
    void* const count = ::dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    void* const set_count = ::dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (count != nullptr && set_count != nullptr) {
      std::memcpy(&found.count, &count, sizeof count);
      std::memcpy(&found.set_count, &set_count, sizeof set_count);
    }
    return found;
  }();
  return functions;
}

class OneThread {
 public:
  OneThread() noexcept : saved_(openmp().count != nullptr ? openmp().count() : 1) {
    if (saved_ != 1) openmp().set_count(1);
  }
  ~OneThread() {
    if (saved_ != 1) openmp().set_count(saved_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int saved_;
};

inline dnnl::engine& engine() {
  // never destroyed: threads may still compute while the process ends
  static auto& instance = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return instance;
}

}  // namespace braid::cpu::onednn
