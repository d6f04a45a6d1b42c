// replicate: what the copies share, and their gradients.
#include "group.hpp"
#include "primitives/broadcast.hpp"
#include "support/temporary.hpp"

namespace braid::test::on_device {

using parallel::broadcast_tensors;
using parallel::replicate;

namespace {

/// Every kind of tensor field, a tied parameter, and plain fields.
struct Kinds : nn::Module {
  nn::Parameter weight{randn({3, 4})}, frozen{randn({2, 2}), false}, tied{zeros({3, 4})}, none;
  nn::Buffer seen{zeros({2})}, steps{zeros({1}, {.dtype = DType::int64})};
  Tensor scale = full({3}, 2.0, {.requires_grad = true}), constant = arange(4);
  std::string name = "kinds";
  mutable int calls = 0;
  Kinds() { nn::tie(tied, weight); }
  Tensor operator()(const Tensor& x) const { return linear(x, weight) * scale; }
  BRAID_FIELDS(weight, frozen, tied, none, seen, steps, scale, constant, name, calls)
};

}  // namespace

ACCEPTANCE("C3: replicas have equal values in memory of their own") {
  // LibTorch also clones for the first device, so in-place writes are lost. Here replica 0 shares
  // the module's memory, as in Python.
  for (const std::vector<Device>& ids : orders()) {
    const Kinds model = placed_on(Kinds(), ids.front());
    const std::vector<Kinds> replicas = replicate(model, ids);
    REQUIRE(replicas.size() == ids.size());
    const std::vector<Tensor> original = tree::leaves(model);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::vector<Tensor> copy = tree::leaves(replicas[i]);
      REQUIRE(copy.size() == original.size());
      for (std::size_t k = 0; k < copy.size(); ++k) {
        CHECK(copy[k].defined() == original[k].defined());
        if (!copy[k].defined()) continue;
        CHECK(copy[k].device() == ids[i]);
        CHECK(copy[k].id()->is_replica);
        CHECK(copy[k].id() != original[k].id());
        CHECK_SAME_BITS(copy[k], original[k]);
        CHECK((copy[k].id()->data() == original[k].id()->data()) == (i == 0));
        CHECK_FALSE(original[k].id()->is_replica);
      }
      CHECK(replicas[i].name == "kinds");
      CHECK(parameters(replicas[i]).size() == parameters(model).size());
      // tied parameters stay tied and are copied once
      CHECK(replicas[i].tied.id() == replicas[i].weight.id());
      CHECK(replicas[i].tied.id()->tied);
    }
    // In-place writes of replica 0 are kept; those of the others are lost.
    for (std::size_t i = 0; i < ids.size(); ++i) {
      replicas[i].seen.add_(10.0 + static_cast<double>(i));
      replicas[i].calls = 5;
    }
    CHECK(numbers(model.seen) == std::vector<double>{10, 10});
    CHECK(model.calls == 0);
  }
}

ACCEPTANCE("T25: replicas compute what the module computes") {
  for (const std::vector<Device>& ids : orders()) {
    const nn::Linear module = placed_on(nn::Linear(10, 5), ids.front());
    const Tensor x = random_tensor({2, 10}, DType::float32, ids.front()), expected = module(x);
    const std::vector<nn::Linear> replicas = replicate(module, ids);
    REQUIRE(replicas.size() == ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
      CHECK_CLOSE(replicas[i](x.to(ids[i])), expected, tolerance(DType::float32));
  }
}

ACCEPTANCE("T26: the buffers of a replica's BatchNorm are on its device") {
  for (const std::vector<Device>& ids : orders()) {
    const nn::BatchNorm2d module = placed_on(nn::BatchNorm2d(10), ids.front());
    const std::vector<nn::BatchNorm2d> replicas = replicate(module, ids);
    REQUIRE(replicas.size() == ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const nn::BatchNorm2d& bn = replicas[i];
      CHECK(bn.running_mean.device() == ids[i]);
      CHECK(bn.running_var.device() == ids[i]);
      CHECK(bn.num_batches_tracked.device() == ids[i]);
      CHECK_SAME_BITS(bn.running_var, module.running_var);
    }
    for (std::size_t i = 0; i < ids.size(); ++i)
      (void)replicas[i](ones({2, 10, 1, 1}, {.device = ids[i]}));
    CHECK(module.num_batches_tracked.item<int>() == 1);
  }
}

ACCEPTANCE("T29: replicas are saved, attached and detached") {
  const TemporaryFolder folder;
  for (const std::vector<Device>& ids : orders()) {
    const nn::Linear module = placed_on(nn::Linear(8, 8), ids.front());
    for (const bool attached : {true, false}) {
      const GradMode mode(attached);
      for (const nn::Linear& replica : replicate(module, ids)) {
        CHECK(replica.weight.requires_grad() == attached);
        const std::string path = folder / "replica.safetensors";
        save_safetensors(path, state_dict(replica));
        nn::Linear loaded(8, 8);
        load_state_dict(loaded, load_safetensors(path).tensors);
        CHECK_SAME_BITS(loaded.weight, module.weight);
        CHECK_SAME_BITS(loaded.bias, module.bias);
      }
    }
  }
}

TEST_CASE("replicate: parameters go through one recorded op", "[replicate]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Kinds model = home(Kinds());
    const std::vector<Kinds> replicas = replicate(model, group(n));
    const Node* node = replicas[0].weight.id()->grad_fn.get();
    REQUIRE(node != nullptr);
    CHECK(node->device() == device(0));
    Tensor total = tensor(0.0);
    for (int i = 0; i < n; ++i) {
      const Kinds& replica = replicas[usize(i)];
      CHECK_FALSE(replica.weight.is_leaf());
      CHECK(replica.weight.id()->grad_fn.get() == node);
      // a plain tensor that requires a gradient
      CHECK(replica.scale.id()->grad_fn.get() == node);
      CHECK_FALSE(replica.frozen.requires_grad());
      CHECK_FALSE(replica.seen.requires_grad());
      CHECK_FALSE(replica.steps.requires_grad());
      CHECK_FALSE(replica.constant.requires_grad());
      total = total + (replica.scale * static_cast<double>(i + 1)).sum().to(device(0));
    }
    // A parameter's copy cannot be changed in place: neither recorded, nor untracked.
    CHECK_THROWS_AS(replicas[0].weight.add_(1.0), AutogradError);
    total.backward();
    CHECK(numbers(model.scale.grad()) == std::vector<double>(3, n * (n + 1) / 2.0));
    CHECK_FALSE(model.weight.grad().defined());
    // The gradients of both uses of a tied parameter are summed once, in that parameter.
    total = tensor(0.0);
    for (const Kinds& replica : replicate(model, group(n)))
      total = total + (replica.weight.sum() + replica.tied.sum()).to(device(0));
    total.backward();
    CHECK(numbers(model.weight.grad()) == std::vector<double>(12, 2.0 * n));
    // Without gradient recording, replicas are detached.
    const NoGrad guard;
    for (const Kinds& replica : replicate(model, group(n)))
      for (const Tensor& t : tree::leaves(replica))
        if (t.defined()) CHECK_FALSE(t.requires_grad());
  }
}

TEST_CASE("replicate: all tensors must be on the first device", "[replicate][errors]") {
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

TEST_CASE("replicate: copies lie in flat buffers by type, with own versions", "[replicate]") {
  if (device_count() < 2) return;
  const std::int64_t million = 1 << 20;  // 4 MiB of float32
  const std::vector<Tensor> tensors{counting({million}),     zeros({3}, {.dtype = DType::float64}),
                                    counting({million}),     counting({million}),
                                    counting({3 * million}), ones({5}),
                                    empty({0, 2}),           counting({7, 3}).t()};
  const std::uint64_t allocations = memory_stats(device(1)).allocations;
  const std::vector<std::vector<Tensor>> copies = broadcast_tensors(tensors, group(2));
  // 8 MiB of float32; float64; 4 MiB of float32 and the small ones; the large one
  CHECK(memory_stats(device(1)).allocations - allocations == 4);
  const auto address = [&](std::size_t k) {
    return static_cast<const char*>(copies[1][k].id()->data());
  };
  CHECK(address(2) - address(0) == 4 * million);  // together: 8 of 10 MiB
  // the third is in the next buffer; the large one between them is alone
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

TEST_CASE("replicate: the gradient is the sum in the fixed tree order", "[replicate]") {
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
    CHECK_FALSE(model.bias.grad().defined());
    // tensors of the caller are only read
    for (const Tensor& seed : seeds) CHECK(seed.version() == 0);
    for (int used = 0; used < n; ++used) {  // only one replica is used
      zero_grad(model);
      const std::vector<nn::Linear> replicas = replicate(model, group(n));
      (replicas[usize(used)].weight * 3.0).sum().backward();
      CHECK(numbers(model.weight.grad()) == std::vector<double>(2000, 3.0));
      CHECK(model.weight.grad().device() == device(0));
      CHECK_FALSE(model.bias.grad().defined());
    }
  }
}

TEST_CASE("replicate: gradients of gradients", "[replicate][autograd]") {
  for (int n = 1; n <= up_to(3); ++n) {
    const auto f = [n](const Tensor& a, const Tensor& b) {
      std::vector<Tensor> out;
      for (const std::vector<Tensor>& copy : broadcast_tensors(std::vector<Tensor>{a, b}, group(n)))
        out.push_back(exp(copy[0]) * copy[1] * copy[1]);
      return out;
    };
    CHECK_GRAD(f, random_tensor({2, 3}, DType::float64, {}, 1, -1, 1).requires_grad_(),
               random_tensor({2, 3}, DType::float64, {}, 2).requires_grad_());
    // each tensor is used on one device only
    const auto partly = [n](const Tensor& a, const Tensor& b) {
      const auto copies = broadcast_tensors(std::vector<Tensor>{a, b}, group(n));
      return std::vector<Tensor>{copies.front()[0] * copies.front()[0],
                                 copies.back()[1] * copies.back()[1] * copies.back()[1]};
    };
    CHECK_GRAD(partly, random_tensor({3}, DType::float64, {}, 1).requires_grad_(),
               random_tensor({2}, DType::float64, {}, 2).requires_grad_());
  }
}

}  // namespace braid::test::on_device
