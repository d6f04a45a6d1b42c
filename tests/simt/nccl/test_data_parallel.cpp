// DataParallel over the fake NCCL gives the same results as over local.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "cuda/gate.hpp"
#include "nccl.hpp"

using namespace braid;
using namespace braid::test;

namespace {

std::vector<std::vector<float>> over(CommunicatorKind kind, nccl::Sum sum,
                                     std::string_view order = "fifo", int n = 4) {
  const Scene scene(kind);
  nccl::set_sum(sum);
  simt::set_stream_order(order);
  return trajectory(4, n);
}

/// What the replica on cuda:1 observes while it delays backward.
struct Watch {
  std::uint64_t begun = 0;  // NCCL calls before backward
  std::chrono::milliseconds limit{0};
  std::atomic<int> held{0};
  std::atomic<bool> seen{false};
};

/// A model whose replica on cuda:1 delays backward between its layers until NCCL is called, or
/// until the limit. The replica on cuda:0 does not, because its thread runs the sums.
struct Held : nn::Module {
  nn::Linear fc1{5, 7}, fc2{7, 3};
  Watch* watch;
  explicit Held(Watch* w) : watch(w) {}
  Tensor operator()(const Tensor& x) const {
    const Tensor h = fc1(x);
    if (x.device().index() == 1)
      h.register_hook([w = watch](const Tensor&) {
        for (const auto until = Clock::now() + w->limit;
             nccl::calls() == w->begun && Clock::now() < until;)
          std::this_thread::sleep_for(1ms);
        w->seen = nccl::calls() > w->begun;
        ++w->held;
      });
    return fc2(tanh(h));
  }
  BRAID_FIELDS(fc1, fc2)
};

}  // namespace

TEST_CASE("nccl: buckets are reduced while backward still runs", "[nccl]") {
  const auto watched = [](std::size_t bucket_bytes, std::chrono::milliseconds limit) {
    const Scene scene;
    Watch watch;
    watch.limit = limit;
    manual_seed(4);
    parallel::DataParallel<Held> model(Held(&watch), group(4), {.bucket_bytes = bucket_bytes});
    to(model, Device("cuda:0"));
    const Tensor loss = exp(model(randn({12, 5}, {.device = Device("cuda:0")}))).mean();
    watch.begun = nccl::calls();
    loss.backward();
    CHECK(watch.held == 1);
    CHECK(nccl::calls() > watch.begun);
    CHECK(parameters(model)[0].grad().defined());
    return watch.seen.load();
  };
  // While the hook waits, fc1's gradients on cuda:1 are missing. So the call that it sees is the
  // sum of fc2's.
  CHECK(watched(1, 20s));
  // With one bucket, nothing can be summed before the hook has ended. So what it saw above was no
  // other call.
  CHECK_FALSE(watched(parallel::kBucketBytes, 50ms));
  CHECK(all_findings() == "");
}

TEST_CASE("nccl: the host goes on with backward while a bucket waits for a device", "[nccl]") {
  /// How far the backward of replica 0 has come.
  struct Progress {
    std::atomic<bool> first{false}, last{false};
  };
  struct Deep : nn::Module {
    nn::Linear fc1{5, 7}, fc2{7, 7}, fc3{7, 3};
    Progress* progress;
    explicit Deep(Progress* p) : progress(p) {}
    Tensor operator()(const Tensor& x) const {
      const Tensor h = fc1(x), g = fc2(tanh(h));
      if (x.device().index() == 0) {
        g.register_hook([p = progress](const Tensor&) {
          // until the other replicas have queued the gradients of fc3, whose sum is then the next
          std::this_thread::sleep_for(100ms);
          p->first = true;
        });
        h.register_hook([p = progress](const Tensor&) { p->last = true; });
      }
      return fc3(tanh(g));
    }
    BRAID_FIELDS(fc1, fc2, fc3)
  };
  const auto gradients = [](CommunicatorKind kind, bool busy) {
    const Scene scene(kind);
    nccl::set_sum(nccl::Sum::tree);
    Progress progress;
    manual_seed(4);
    parallel::DataParallel<Deep> model(Deep(&progress), group(4), {.bucket_bytes = 300});
    to(model, Device("cuda:0"));
    const Tensor loss = exp(model(randn({12, 5}, {.device = Device("cuda:0")}))).mean();
    for (const Device d : group(4)) synchronize(d);
    {
      std::unique_ptr<Gate> gate;
      if (busy) gate = std::make_unique<Gate>(current_stream(Device("cuda:1")));
      std::thread backward([&] { loss.backward(); });
      while (!progress.last && !(busy && gate->late())) std::this_thread::sleep_for(1ms);
      if (busy) CHECK_FALSE(gate->late());
      if (busy) gate->open();
      backward.join();
    }
    CHECK(progress.first);
    std::vector<float> all;
    for (const auto& p : parameters(model)) append(all, p.grad());
    return all;
  };
  const auto expected = gradients(CommunicatorKind::local, false);
  for (const bool busy : {false, true}) {
    INFO((busy ? "busy" : "idle"));
    CHECK(gradients(CommunicatorKind::nccl, busy) == expected);
    CHECK(all_findings() == "");
  }
}

TEST_CASE("nccl: DataParallel equals local, to the bit in local's order of sums", "[nccl]") {
  const auto local = over(CommunicatorKind::local, nccl::Sum::ring);
  REQUIRE(local.front() != local.back());
  const std::uint64_t before = nccl::calls();
  for (const char* const order : {"fifo", "reverse", "random:1", "random:2", "random:3"}) {
    INFO(order);
    CHECK(over(CommunicatorKind::nccl, nccl::Sum::tree, order) == local);
    CHECK(all_findings() == "");
  }
  CHECK(nccl::calls() > before);
  CHECK(nccl::alive() == 0);
  // Two ranks have only one order of summation. For more ranks NCCL uses its own order, which gives
  // different bits, but the same numbers within rounding.
  CHECK(over(CommunicatorKind::nccl, nccl::Sum::ring, "fifo", 2) ==
        over(CommunicatorKind::local, nccl::Sum::ring, "fifo", 2));
  const auto ring = over(CommunicatorKind::nccl, nccl::Sum::ring);
  double worst = 0;
  for (std::size_t i = 0; i < ring.size(); ++i)
    for (std::size_t j = 0; j < ring[i].size(); ++j)
      worst = std::max(
          worst, std::abs(static_cast<double>(ring[i][j]) - static_cast<double>(local[i][j])));
  CHECK(worst < 1e-5);
  CHECK(ring != local);
  CHECK(all_findings() == "");
}

TEST_CASE("nccl: replicas meet over it too, and virtual replicas have local's bits", "[nccl]") {
  struct Normed : nn::Module {
    nn::Linear fc{5, 6};
    nn::SyncBatchNorm norm{6};
    Tensor operator()(const Tensor& x) const { return norm(fc(x)); }
    BRAID_FIELDS(fc, norm)
  };
  /// Returns the output and the gradients. `sum`: the library's order of summation.
  const auto run = [](CommunicatorKind kind, auto make, nccl::Sum sum, int virtual_replicas = 0) {
    const Scene scene(kind);
    nccl::set_sum(sum);
    manual_seed(5);
    using M = decltype(make());
    auto model = virtual_replicas == 0
                     ? parallel::DataParallel<M>(make(), group(4))
                     : parallel::DataParallel<M>(parallel::DeterministicDataParallel<M>(
                           make(), group(4), {virtual_replicas}));
    to(model, Device("cuda:0"));
    const Tensor y = model(randn({16, 5}, {.device = Device("cuda:0")}));
    (y * y).sum().backward();
    std::vector<float> all = floats(y);
    for (const auto& p : parameters(model)) append(all, p.grad());
    return all;
  };
  const auto normed = [] { return Normed{}; };
  const auto net = [] { return Net{}; };
  using nccl::Sum;
  CHECK(run(CommunicatorKind::nccl, normed, Sum::tree) ==
        run(CommunicatorKind::local, normed, Sum::tree));
  CHECK(all_findings() == "");
  const std::uint64_t before = nccl::calls();
  const auto deterministic = run(CommunicatorKind::nccl, net, Sum::ring, 4);
  CHECK(nccl::calls() > before);  // the copies of the weights use it
  CHECK(deterministic == run(CommunicatorKind::local, net, Sum::ring, 4));
}

TEST_CASE("nccl: weights that nobody changed are not sent again", "[nccl]") {
  const Scene scene;
  Program program;
  const NoGrad guard;
  (void)program.model(program.x);
  const std::uint64_t before = nccl::calls();
  (void)program.model(program.x);
  CHECK(nccl::calls() == before);
}

TEST_CASE("nccl: two programs use one group from two threads", "[nccl]") {
  const Scene scene;
  const auto expected = trajectory(3);
  Program programs[2];
  std::vector<std::thread> threads;
  for (Program& program : programs)
    threads.emplace_back([&program] {
      for (int step = 0; step < 3; ++step) program.step();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Program& program : programs) CHECK(program.numbers() == expected.back());
  CHECK(all_findings() == "");
}
