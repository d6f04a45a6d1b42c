// DataParallel over NCCL's stand-in is DataParallel over local.
#include <cmath>
#include <thread>

#include "nccl.hpp"

using namespace braid;
using namespace braid::test;

namespace {

std::vector<std::vector<float>> over(CommunicatorKind kind, nccl::Sum sum, std::string_view order = "fifo", int n = 4) {
  const Scene scene(kind);
  nccl::set_sum(sum);
  simt::set_stream_order(order);
  return trajectory(4, n);
}

}  // namespace

TEST_CASE("nccl: DataParallel on cuda:0..3 equals local, bit for bit where the order of the sums is local's", "[nccl]") {
  const auto local = over(CommunicatorKind::local, nccl::Sum::ring);
  REQUIRE(local.front() != local.back());
  const std::uint64_t before = nccl::calls();
  for (const char* const order : {"fifo", "reverse", "random:1", "random:2", "random:3"}) {
    INFO(order);
    CHECK(over(CommunicatorKind::nccl, nccl::Sum::tree, order) == local);
    CHECK(findings() == "");
  }
  CHECK(nccl::calls() > before);
  CHECK(nccl::alive() == 0);
  // Two ranks have one order only; for more NCCL has its own, and gives other bits but no other numbers.
  CHECK(over(CommunicatorKind::nccl, nccl::Sum::ring, "fifo", 2) == over(CommunicatorKind::local, nccl::Sum::ring, "fifo", 2));
  const auto ring = over(CommunicatorKind::nccl, nccl::Sum::ring);
  double worst = 0;
  for (std::size_t i = 0; i < ring.size(); ++i)
    for (std::size_t j = 0; j < ring[i].size(); ++j) worst = std::max(worst, std::abs(static_cast<double>(ring[i][j]) - static_cast<double>(local[i][j])));
  CHECK(worst < 1e-5);
  CHECK(ring != local);
  CHECK(findings() == "");
}

TEST_CASE("nccl: replicas meet over it too, and weights that nobody changed are not sent again", "[nccl]") {
  struct Normed : nn::Module {
    nn::Linear fc{5, 6};
    nn::SyncBatchNorm norm{6};
    Tensor operator()(const Tensor& x) const { return norm(fc(x)); }
    BRAID_FIELDS(fc, norm)
  };
  const auto run = [](CommunicatorKind kind) {
    const Scene scene(kind);
    nccl::set_sum(nccl::Sum::tree);
    manual_seed(5);
    parallel::DataParallel<Normed> model(Normed{}, group(4));
    to(model, Device("cuda:0"));
    const Tensor x = randn({16, 5}, {.device = Device("cuda:0")});
    const Tensor y = model(x);
    (y * y).sum().backward();
    std::vector<float> all = y.detach().to(Device()).to_vector<float>();
    for (const auto& p : parameters(model))
      for (const float v : p.grad().to(Device()).to_vector<float>()) all.push_back(v);
    return all;
  };
  const auto expected = run(CommunicatorKind::local);
  CHECK(run(CommunicatorKind::nccl) == expected);
  CHECK(findings() == "");

  const Scene scene;
  Program program;
  const NoGrad guard;
  (void)program.model(program.x);
  const std::uint64_t before = nccl::calls();
  (void)program.model(program.x);
  CHECK(nccl::calls() == before);
}

TEST_CASE("nccl: shards have local's bits, whatever the library's order of sums", "[nccl]") {
  const auto gradients = [](CommunicatorKind kind) {
    const Scene scene(kind);
    manual_seed(9);
    parallel::DataParallel<Net> model(Net{}, group(4), {.shards = 4});
    to(model, Device("cuda:0"));
    const Tensor x = randn({12, 5}, {.device = Device("cuda:0")});
    exp(model(x)).mean().backward();
    std::vector<float> all;
    for (const auto& p : parameters(model))
      for (const float v : p.grad().to(Device()).to_vector<float>()) all.push_back(v);
    return all;
  };
  const std::uint64_t before = nccl::calls();
  const auto over_nccl = gradients(CommunicatorKind::nccl);
  CHECK(nccl::calls() > before);  // it carries the copies of the weights
  CHECK(over_nccl == gradients(CommunicatorKind::local));
}

TEST_CASE("nccl: two programs use one group from two threads", "[nccl]") {
  const Scene scene;
  const auto expected = trajectory(3);
  std::vector<std::vector<std::vector<float>>> got(2);
  Program programs[2];
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      for (int step = 0; step < 3; ++step) programs[i].step();
      got[i].push_back(programs[i].numbers());
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : got) CHECK(each.at(0) == expected.back());
  CHECK(findings() == "");
}
