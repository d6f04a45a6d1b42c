// What is left after a step, and after a step that failed for want of memory.
#include <braid/core/memory.hpp>
#include <braid/nn/activations.hpp>
#include <braid/nn/losses.hpp>
#include <braid/nn/sequential.hpp>
#include <braid/parallel/data_parallel.hpp>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::DataParallel;
using parallel::DataParallelOptions;

namespace {

auto network() { return nn::Sequential{nn::Linear(6, 32), nn::ReLU(), nn::Linear(32, 3)}; }
using Network = decltype(network());

Tensor labels_for(std::int64_t rows) {
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < rows; ++i) classes.push_back(i % 3);
  return tensor(classes);
}

void step(const DataParallel<Network>& model, const Tensor& x, const Tensor& labels) {
  nn::cross_entropy(model(x), labels).backward();
}

std::vector<Tensor> gradients(const DataParallel<Network>& model) {
  std::vector<Tensor> list;
  for (const Tensor& p : parameters(model)) list.push_back(p.grad());
  return list;
}

}  // namespace

TEST_CASE("8.8, T10: after a step no replica's tensor is alive", "[parallel][memory]") {
  const Tensor x = random_tensor({16, 6}), labels = labels_for(16);
  for (int k = 0; k < 2 * device_count(); ++k) {
    const int n = k / 2 + 1;
    const bool cache = k % 2 != 0;
    INFO(n << " devices" << (cache ? ", cached" : ""));
    const DataParallel model(home(network()), group(n), DataParallelOptions{.cache = cache});
    if (cache) {  // what stays alive is the copies of the weights, from the first call on
      const NoGrad guard;
      (void)model(x);
    }
    const std::vector<std::size_t> before = in_use();
    {
      const Tensor y = model(x);
      // its graph holds the replica's weights
      if (n > 1) CHECK(memory_stats(device(1)).in_use > before[1]);
    }
    CHECK(in_use() == before);
    for (int round = 0; round < 3; ++round) step(model, x, labels);
    zero_grad(model);
    CHECK(in_use() == before);
    {
      const NoGrad guard;
      const Tensor y = model(x);
      for (int i = 1; i < n; ++i)
        CHECK(memory_stats(device(i)).in_use == before[static_cast<std::size_t>(i)]);
    }
    CHECK(in_use() == before);
  }
}

TEST_CASE("11.7: after a replica has thrown no tensor is left", "[parallel][memory][errors]") {
  struct Throws : nn::Module {
    nn::Linear fc{6, 32};
    Tensor operator()(const Tensor& x) const {
      Tensor y = fc(x);
      if (x.device().index() == 1) throw Error("on purpose");
      return y;
    }
    BRAID_FIELDS(fc)
  };
  if (device_count() < 2) return;
  const DataParallel model(home(Throws{}), devices(), DataParallelOptions{.cache = false});
  const Tensor x = random_tensor({16, 6});
  const std::vector<std::size_t> before = in_use();
  CHECK_THROWS_AS(model(x), ReplicaError);
  CHECK(in_use() == before);
}

TEST_CASE(
    "R6: one device short of memory: a clear error, nothing lost, and the next step is the same to "
    "the bit",
    "[parallel][memory][errors]") {
  const Tensor x = random_tensor({16, 6}), labels = labels_for(16);
  for (int n = 2; n <= std::min(3, device_count()); ++n) {
    const DataParallel model(home(network()), group(n));
    step(model, x, labels);
    const std::vector<Tensor> expected = gradients(model);
    zero_grad(model);
    const std::vector<std::size_t> before = in_use();
    for (int tight = 1; tight < n; ++tight) {
      const Device d = device(tight);
      int failed = 0;
      std::size_t capacity = before[static_cast<std::size_t>(tight)] + 64;
      for (bool worked = false; !worked; capacity += 1024) {
        set_memory_capacity(d, capacity);
        try {
          step(model, x, labels);
          worked = true;
        } catch (const OutOfMemoryError& e) {
          CHECK(e.device == d);
          CHECK(e.capacity == capacity);
          ++failed;
        } catch (const ReplicaError& e) {
          REQUIRE(e.cause<OutOfMemoryError>() != nullptr);
          CHECK(e.cause<OutOfMemoryError>()->device == d);
          CHECK(e.index() == static_cast<std::size_t>(tight));
          ++failed;
        }
        if (!worked) {
          CHECK(in_use() == before);
          for (const Tensor& g : gradients(model)) CHECK_FALSE(g.defined());
        }
      }
      set_memory_capacity(d, 0);
      CHECK(failed > 3);
      for (std::size_t k = 0; k < expected.size(); ++k)
        CHECK_SAME_BITS(gradients(model)[k], expected[k]);
      zero_grad(model);
      CHECK(in_use() == before);
    }
  }
}

TEST_CASE("R5: every single allocation of a step fails once", "[parallel][memory][errors]") {
  const Tensor x = random_tensor({7, 6}), labels = labels_for(7);
  for (int n = 2; n <= std::min(3, device_count()); ++n) {
    const DataParallel model(home(network()), group(n));
    step(model, x, labels);
    const std::vector<Tensor> expected = gradients(model);
    zero_grad(model);
    const std::vector<std::size_t> before = in_use();
    for (int which = 0; which < n; ++which) {
      for (const bool persistent : {false, true}) {
        std::uint64_t k = 1;
        for (bool worked = false; !worked; ++k) {
          REQUIRE(k < 10000);
          fail_allocation(device(which), k, persistent);
          try {
            step(model, x, labels);
            worked = true;
          } catch (const OutOfMemoryError&) {
          } catch (const ReplicaError& e) {
            CHECK(e.cause<OutOfMemoryError>() != nullptr);
          }
          fail_allocation(device(which), 0);
          if (worked) break;
          if (in_use() != before)
            FAIL(n << " devices, allocation " << k << " of " << device(which)
                   << ": memory is left");
          for (const Tensor& g : gradients(model)) CHECK_FALSE(g.defined());
        }
        CHECK(k > 5);
        for (std::size_t i = 0; i < expected.size(); ++i)
          CHECK_SAME_BITS(gradients(model)[i], expected[i]);
        zero_grad(model);
      }
    }
  }
}

}  // namespace braid::test::on_device
