#include <braid/parallel/replicate.hpp>

#include <braid/core/memory.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/nn/sequential.hpp>

#include "group.hpp"
#include "primitives/broadcast.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"

namespace braid::test::on_device {

using parallel::replicate;

namespace {

/// Every kind of tensor field, a tie, and plain fields.
struct Kinds : nn::Module {
  nn::Parameter weight{randn({3, 4})}, frozen{randn({2, 2}), false}, tied{zeros({3, 4})}, none;
  nn::Buffer seen{zeros({2})}, steps{zeros({1}, {.dtype = DType::int64})};
  Tensor scale = full({3}, 2, {.requires_grad = true}), constant = arange(4);
  std::string name = "kinds";
  mutable int calls = 0;
  Kinds() { nn::tie(tied, weight); }
  Tensor operator()(const Tensor& x) const { return linear(x, weight) * scale; }
  BRAID_FIELDS(weight, frozen, tied, none, seen, steps, scale, constant, name, calls)
};

}  // namespace

TEST_CASE("4.1, T25: a replica for each device, with the same numbers, on it",
          "[parallel][replicate]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Kinds model = home(Kinds());
    const std::vector<Kinds> replicas = replicate(model, group(n));
    REQUIRE(replicas.size() == static_cast<std::size_t>(n));
    const std::vector<Tensor> original = tree::leaves(model);
    for (int i = 0; i < n; ++i) {
      const std::vector<Tensor> copy = tree::leaves(replicas[static_cast<std::size_t>(i)]);
      REQUIRE(copy.size() == original.size());
      for (std::size_t k = 0; k < copy.size(); ++k) {
        CHECK(copy[k].defined() == original[k].defined());
        if (!copy[k].defined()) continue;
        CHECK(copy[k].device() == device(i));
        CHECK(copy[k].id()->is_replica);
        CHECK(copy[k].id() != original[k].id());
        CHECK_SAME_BITS(copy[k].to(device(0)), original[k]);
      }
      CHECK(replicas[static_cast<std::size_t>(i)].name == "kinds");
      CHECK(parameters(replicas[static_cast<std::size_t>(i)]).size() == parameters(model).size());
    }
    for (const Tensor& t : original) CHECK((!t.defined() || !t.id()->is_replica));
  }
}

TEST_CASE(
    "4.2: replica 0 shares storage; what it writes in place stays, what others write vanishes",
    "[parallel][replicate]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Kinds model = home(Kinds());
    const std::vector<Kinds> replicas = replicate(model, group(n));
    for (int i = 0; i < n; ++i) {
      const Kinds& replica = replicas[static_cast<std::size_t>(i)];
      CHECK((replica.weight.storage() == model.weight.storage()) == (i == 0));
      replica.seen.add_(10.0 + i);
      replica.calls = 5;
    }
    CHECK(numbers(model.seen) == std::vector<double>{10, 10});
    CHECK(model.calls == 0);
  }
}

TEST_CASE("4.3: parameters go through one recorded op; frozen ones and buffers have no history",
          "[parallel][replicate][autograd]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Kinds model = home(Kinds());
    const std::vector<Kinds> replicas = replicate(model, group(n));
    const Node* node = replicas[0].weight.id()->grad_fn.get();
    REQUIRE(node != nullptr);
    CHECK(node->device() == device(0));
    for (const Kinds& replica : replicas) {
      CHECK_FALSE(replica.weight.is_leaf());
      CHECK(replica.weight.id()->grad_fn.get() == node);
      // a plain tensor that requires a gradient (4.4)
      CHECK(replica.scale.id()->grad_fn.get() == node);
      CHECK_FALSE(replica.frozen.requires_grad());
      CHECK_FALSE(replica.seen.requires_grad());
      CHECK_FALSE(replica.steps.requires_grad());
      CHECK_FALSE(replica.constant.requires_grad());
    }
    // A parameter's copy cannot be changed in place where that would be recorded, nor without a
    // trace.
    CHECK_THROWS_AS(replicas[0].weight.add_(1.0), AutogradError);
  }
}

TEST_CASE("4.4, T01: a buffer that requires a gradient gets one",
          "[parallel][replicate][autograd]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Kinds model = home(Kinds());
    const std::vector<Kinds> replicas = replicate(model, group(n));
    Tensor total = tensor(0.0);
    for (int i = 0; i < n; ++i)
      total = total + (replicas[static_cast<std::size_t>(i)].scale * static_cast<double>(i + 1))
                          .sum()
                          .to(device(0));
    total.backward();
    CHECK(numbers(model.scale.grad()) == std::vector<double>(3, n * (n + 1) / 2.0));
    CHECK_FALSE(model.weight.grad().defined());
  }
}

TEST_CASE("4.7: all tensors must be on devices[0]", "[parallel][replicate][errors]") {
  const Kinds model = home(Kinds());
  CHECK_THROWS_TEXT(ArgumentError, "replicate: expected at least one device, got none",
                    replicate(model, {}));
  CHECK_THROWS_TEXT(DeviceError, "expected one of cpu:0*got cpu:63",
                    replicate(model, {Device("cpu:63")}));
  if (device_count() < 2) return;
  CHECK_THROWS_TEXT(
      DeviceError, here("all tensors must be on devices[0]: expected cpu:1, got 'weight' on cpu:0"),
      replicate(model, {device(1), device(0)}));
  CHECK_THROWS_TEXT(DeviceError, here("replicate: expected each device once, got cpu:0 twice"),
                    replicate(model, {device(0), device(0)}));
  Kinds astray = home(Kinds());
  astray.constant = astray.constant.to(device(1));
  CHECK_THROWS_TEXT(
      DeviceError,
      here("all tensors must be on devices[0]: expected cpu:0, got 'constant' on cpu:1"),
      replicate(astray, group(2)));
}

TEST_CASE("4.8: tied parameters stay tied in every replica, and are copied once",
          "[parallel][replicate]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Kinds model = home(Kinds());
    for (const Kinds& replica : replicate(model, group(n))) {
      CHECK(replica.tied.id() == replica.weight.id());
      CHECK(replica.tied.id()->tied);
    }
    // The gradient of both uses arrives once, in the one parameter.
    const std::vector<Kinds> replicas = replicate(model, group(n));
    Tensor total = tensor(0.0);
    for (const Kinds& replica : replicas)
      total = total + (replica.weight.sum() + replica.tied.sum()).to(device(0));
    total.backward();
    CHECK(numbers(model.weight.grad()) == std::vector<double>(12, 2.0 * n));
  }
}

TEST_CASE("4.10: without gradient recording, replicas are detached", "[parallel][replicate]") {
  const Kinds model = home(Kinds());
  const NoGrad guard;
  for (const Kinds& replica : replicate(model, devices()))
    for (const Tensor& t : tree::leaves(replica))
      if (t.defined()) CHECK_FALSE(t.requires_grad());
}

TEST_CASE("4.5, 4.6: copies lie in flat buffers by type, each with a version of its own",
          "[parallel][replicate]") {
  if (device_count() < 2) return;
  const std::int64_t million = 1 << 20;  // 4 MiB of float32
  const std::vector<Tensor> tensors{counting({million}),     zeros({3}, {.dtype = DType::float64}),
                                    counting({million}),     counting({million}),
                                    counting({3 * million}), ones({5}),
                                    empty({0, 2}),           counting({7, 3}).t()};
  const std::uint64_t allocations = memory_stats(device(1)).allocations;
  const std::vector<std::vector<Tensor>> copies = parallel::broadcast_tensors(tensors, group(2));
  // 8 MiB of float32; float64; 4 MiB of float32 and what is small; the large one
  CHECK(memory_stats(device(1)).allocations - allocations == 4);
  const auto address = [&](std::size_t k) {
    return static_cast<const char*>(copies[1][k].id()->data());
  };
  CHECK(address(2) - address(0) == 4 * million);  // together: 8 of 10 MiB
  // the third is in the next, the large one between them alone
  CHECK(address(5) - address(3) == 4 * million);
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    CHECK_SAME_BITS(copies[1][k].to(device(0)), tensors[k]);
    CHECK(reinterpret_cast<std::uintptr_t>(address(k)) % 64 == 0);
  }
  const std::uint64_t before = copies[1][2].version();
  copies[1][0].zero_();
  CHECK(copies[1][2].version() == before);
  CHECK_SAME_BITS(copies[1][2].to(device(0)), tensors[2]);
}

TEST_CASE("7.1: the gradient of replicate is the sum in the fixed tree order",
          "[parallel][replicate][autograd]") {
  for (int n = 1; n <= device_count(); ++n) {
    nn::Linear model = home(nn::Linear(40, 50));
    std::vector<Tensor> seeds, outputs;
    for (const nn::Linear& replica : replicate(model, group(n))) {
      outputs.push_back(replica.weight);
      seeds.push_back(random_tensor({50, 40}, DType::float32, replica.weight.device(),
                                    outputs.size(), -1e3, 1e3));
    }
    backward(outputs, seeds);
    std::vector<std::vector<float>> values;
    for (const Tensor& seed : seeds) values.push_back(seed.to_vector<float>());
    // pairs at distance 1, 2, 4
    for (std::size_t distance = 1; distance < values.size(); distance *= 2)
      for (std::size_t i = 0; i + distance < values.size(); i += 2 * distance)
        for (std::size_t k = 0; k < values[i].size(); ++k) values[i][k] += values[i + distance][k];
    CHECK(model.weight.grad().to_vector<float>() == values[0]);
    CHECK_FALSE(model.bias.grad().defined());  // 7.6
    // what the caller holds is only read
    for (const Tensor& seed : seeds) CHECK(seed.version() == 0);
  }
}

TEST_CASE("7.6: undefined in some replicas counts as zero, in all stays none",
          "[parallel][replicate][autograd]") {
  for (int n = 2; n <= device_count(); ++n) {
    for (int used = 0; used < n; ++used) {
      nn::Linear model = home(nn::Linear(3, 2));
      const std::vector<nn::Linear> replicas = replicate(model, group(n));
      const Tensor y = replicas[static_cast<std::size_t>(used)].weight * 3.0;
      y.sum().backward();
      CHECK(numbers(model.weight.grad()) == std::vector<double>(6, 3.0));
      CHECK(model.weight.grad().device() == device(0));
      CHECK_FALSE(model.bias.grad().defined());
    }
  }
}

TEST_CASE("7.4: gradients of gradients through replicate", "[parallel][replicate][autograd]") {
  for (int n : {1, 2, 3}) {
    if (n > device_count()) continue;
    const auto f = [n](const Tensor& a, const Tensor& b) {
      std::vector<Tensor> out;
      for (const std::vector<Tensor>& copy :
           parallel::broadcast_tensors(std::vector<Tensor>{a, b}, group(n)))
        out.push_back(exp(copy[0]) * copy[1] * copy[1]);
      return out;
    };
    CHECK_GRAD(f, random_tensor({2, 3}, DType::float64, {}, 1, -1, 1).requires_grad_(),
               random_tensor({2, 3}, DType::float64, {}, 2).requires_grad_());
    // each tensor used on one device only
    const auto partly = [n](const Tensor& a, const Tensor& b) {
      const auto copies = parallel::broadcast_tensors(std::vector<Tensor>{a, b}, group(n));
      return std::vector<Tensor>{copies.front()[0] * copies.front()[0],
                                 copies.back()[1] * copies.back()[1] * copies.back()[1]};
    };
    CHECK_GRAD(partly, random_tensor({3}, DType::float64, {}, 1).requires_grad_(),
               random_tensor({2}, DType::float64, {}, 2).requires_grad_());
  }
}

}  // namespace braid::test::on_device
