#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include <braid/core/backend.hpp>
#include <braid/core/device.hpp>
#include <braid/core/kernel_args/gemm.hpp>

#include "support/check.hpp"
#include "support/child.hpp"
#include "support/sanitized.hpp"

// Tests that the runtime and oneDNN work while the process exits, and in a forked child. Each case
// needs a separate process, so the cases are hidden and the visible ones run them.
namespace {

using braid::Device;

// Products large enough for helper threads: float32, which oneDNN computes where it is available
// and faster, and float64, which uses Braid's packed loops.
template <typename T> struct Product {
  std::int64_t size;
  std::vector<T> a, b, c;

  explicit Product(std::int64_t n)
      : size(n), a(static_cast<std::size_t>(n * n), T(0.5)), b(a.size(), T(0.25)), c(a.size()) {}
  void run(bool turned) {
    braid::GemmArgs args{};
    args.dtype = sizeof(T) == 8 ? braid::DType::float64 : braid::DType::float32;
    args.tb = turned;
    args.m = args.n = args.k = args.lda = args.ldb = args.ldc = size;
    args.batch = 1;
    args.a = a.data(), args.b = b.data(), args.c = c.data();
    const braid::DeviceContext& context = braid::device_context(Device("cpu"));
    context.kernels->gemm(args, *context.stream);
    for (T x : c)
      if (x != static_cast<T>(size) * T(0.125)) ::_exit(3);
  }
};
struct Work {
  Product<float> singles;
  Product<double> doubles;

  explicit Work(std::int64_t n) : singles(n), doubles(n) {}
  void run() {
    for (bool turned : {false, true}) {
      singles.run(turned);
      doubles.run(turned);
    }
  }
};

struct ComputesAtTheEnd {
  bool on = false;
  Work work{200};
  ~ComputesAtTheEnd() {
    if (on) work.run();
  }
};
ComputesAtTheEnd at_process_end;
thread_local ComputesAtTheEnd at_thread_end;

}  // namespace

TEST_CASE("child: static and thread_local destructors compute", "[.child][exit]") {
  braid::set_num_threads(3);
  at_process_end.on = at_thread_end.on = true;
  Work(200).run();
  std::thread([] {
    at_thread_end.on = true;
    Work(200).run();
  }).join();
  CHECK(at_process_end.on);
}
TEST_CASE("exit: destructors that run after main can compute", "[kernels][exit]") {
  for (int i = 0; i < 5; ++i) CHECK_CHILD("BRAID_THREADS=3", "[.child][exit]");
}

TEST_CASE("child: a worker ends the process while others compute", "[.child][worker-exit]") {
  braid::set_num_threads(3);
  std::thread other([] {
    for (Work work(200);;) work.run();
  });
  std::thread([] {
    Work(200).run();
    std::exit(0);
  }).join();
  other.join();
}
TEST_CASE("exit: a worker may end the process", "[kernels][exit]") {
  for (int i = 0; i < 20; ++i) {
    const braid::test::ChildResult child =
        braid::test::run_child("BRAID_THREADS=3", "[.child][worker-exit]");
    INFO(child.output);
    CHECK(child.status == 0);
  }
}

// A sanitizer's allocator is not fork-safe while another thread allocates, so sanitized builds fork
// without calls in flight.
constexpr bool kSanitized = BRAID_SANITIZED;

TEST_CASE("child: forks with helpers and calls in flight", "[.child][fork]") {
  braid::set_num_threads(3);
  Work work(200);
  work.run();  // starts the helpers
  std::atomic<bool> stop{kSanitized};
  std::thread other([&] {
    for (Work mine(200); !stop;) mine.run();
  });
  if (kSanitized) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (int i = 0; i < 10; ++i) {
    const ::pid_t pid = ::fork();
    if (pid == 0) {
      work.run();                  // the child has no helpers: the caller works alone
      if (kSanitized) ::_exit(0);  // the leak checker cannot see the other threads' stacks
      std::exit(0);
    }
    int status = -1;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    ::pid_t ended = 0;
    while ((ended = ::waitpid(pid, &status, WNOHANG)) == 0 &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (ended != pid) {  // a live child would keep this process's output open
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    CHECK(ended == pid);
    CHECK(status == 0);
  }
  stop = true;
  other.join();
}
TEST_CASE("exit: a forked child computes and ends", "[kernels][exit]") {
  CHECK_CHILD("BRAID_THREADS=3", "[.child][fork]");
}
