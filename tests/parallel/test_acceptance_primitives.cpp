// Acceptance: scatter, replicate, parallel_apply and gather, each alone.
#include <braid/core/safetensors.hpp>
#include <braid/nn/norm.hpp>
#include <braid/parallel/parallel.hpp>

#include <map>
#include <stdexcept>
#include <tuple>

#include "acceptance.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"
#include "support/temporary.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::gather;
using parallel::parallel_apply;
using parallel::replicate;
using parallel::scatter;

namespace {

struct KeyError : nn::Module {
  Tensor operator()() const { throw std::out_of_range("'wonderful'"); }
  BRAID_FIELDS()
};

struct WithNorm : nn::Module {
  nn::BatchNorm2d bn{10};
  BRAID_FIELDS(bn)
};

void check_scatter(Device from) {
  for (const std::vector<Device>& ids : orders_of_two()) {
    const Tensor x = random_tensor({4, 4}, DType::float64, from).requires_grad_();
    const std::vector<Tensor> parts = scatter(x, ids);
    REQUIRE(parts.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(parts[i].device() == ids[i]);
      CHECK_SAME_BITS(parts[i].detach(), x.detach().narrow(0, 2 * static_cast<std::int64_t>(i), 2));
    }
    parts[0].backward(full({2, 4}, 2, {.device = ids[0], .dtype = DType::float64}));
    CHECK(x.grad().device() == from);
    CHECK(numbers(x.grad()) == std::vector<double>{2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0});
    CHECK_GRAD([&](const Tensor& y) { return scatter(y, ids); },
               random_tensor({4, 4}, DType::float64, from, 2).requires_grad_());
  }
}

void check_gather(Device to) {
  if (device_count() < 2) return;
  const auto joined = [to](const Tensor& a, const Tensor& b) {
    return gather(std::vector<Tensor>{a, b}, to);
  };
  const auto check_joined = [&](const Sizes& shape) {
    const auto leaf = [&](int i) {
      return random_tensor(shape, DType::float64, device(i), static_cast<std::uint64_t>(i) + 1)
          .requires_grad_();
    };
    const Tensor a = leaf(0), b = leaf(1), y = joined(a, b);
    const std::int64_t rows = shape.empty() ? 1 : shape[0];
    CHECK(y.shape() == (shape.empty() ? Shape{2} : Shape{2 * rows, shape[1]}));
    CHECK(y.device() == to);
    const Tensor dy = random_tensor(sizes_of(y.shape()), DType::float64, to, 3);
    y.backward(dy);
    std::int64_t at = 0;
    for (const Tensor& part : {a, b}) {
      const Shape like = part.shape();  // of a part without dimensions: none
      CHECK_SAME_BITS(y.detach().narrow(0, at, rows).reshape(like), part.detach());
      CHECK_SAME_BITS(part.grad(), dy.narrow(0, at, rows).reshape(like));
      CHECK(part.grad().device() == part.device());
      at += rows;
    }
    CHECK_GRAD(joined, leaf(0), leaf(1));
  };
  check_joined({2, 4});
  check_joined({});
}

}  // namespace

TEST_CASE("T04: two modules on two devices, inputs as tuples and as they are",
          "[parallel][acceptance]") {
  std::vector<nn::Linear> modules;
  std::vector<Tensor> inputs, expected;
  std::vector<std::tuple<Tensor>> tuples;
  for (int i = 0; i < std::min(2, device_count()); ++i) {
    modules.push_back(placed_on(nn::Linear(10, 5), device(i)));
    inputs.push_back(
        random_tensor({2, 10}, DType::float32, device(i), static_cast<std::uint64_t>(i) + 1));
    tuples.emplace_back(inputs.back());
    expected.push_back(modules.back()(inputs.back()));
  }
  for (const std::vector<Tensor>& outputs :
       {parallel_apply(modules, tuples), parallel_apply(modules, inputs)}) {
    REQUIRE(outputs.size() == expected.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CHECK(outputs[i].device() == expected[i].device());
      CHECK_CLOSE(outputs[i], expected[i], tolerance(DType::float32));
    }
  }
}

TEST_CASE("T06: an exception of a replica passes, with its text", "[parallel][acceptance]") {
  // PyTorch's runs one device twice and keeps the type; here a device is there once and the type is
  // ReplicaError's, the original below it.
  const int n = std::min(2, device_count());
  try {
    parallel_apply(std::vector<KeyError>(static_cast<std::size_t>(n)),
                   std::vector<std::tuple<>>(static_cast<std::size_t>(n)), group(n));
    FAIL("nothing was thrown");
  } catch (const ReplicaError& e) {
    const std::string text =
        str("Caught std::out_of_range in replica 0 on device ", device(0), ": 'wonderful'");
    CHECK(std::string(e.what()).substr(0, text.size()) == text);
    CHECK(e.failures.size() == static_cast<std::size_t>(n));
    REQUIRE(e.cause<std::out_of_range>() != nullptr);
    CHECK(std::string(e.cause<std::out_of_range>()->what()) == "'wonderful'");
    CHECK_THROWS_AS(std::rethrow_if_nested(e), std::out_of_range);
  }
}

TEST_CASE("T19: scatter from the host", "[parallel][acceptance]") { check_scatter(host()); }

TEST_CASE("T20: scatter from a device", "[parallel][acceptance]") {
  check_scatter(device(0));
  if (device_count() > 1) check_scatter(device(1));
}

TEST_CASE("T22: gather to the host", "[parallel][acceptance]") { check_gather(host()); }

TEST_CASE("T23: gather to a device", "[parallel][acceptance]") {
  check_gather(device(0));
  if (device_count() > 1) check_gather(device(1));
}

TEST_CASE("T24: gather of maps with different numbers of keys", "[parallel][acceptance]") {
  if (device_count() < 2) return;
  using Map = std::map<std::string, Tensor>;
  const auto leaf = [](int i) {
    return random_tensor({1, 2}, DType::float32, device(i)).requires_grad_();
  };
  CHECK_THROWS_TEXT(
      ArgumentError, "All dicts must have the same number of keys",
      gather(std::vector<Map>{{{"a", leaf(0)}}, {{"b", leaf(1)}, {"a", leaf(1)}}}, device(0)));
  CHECK_THROWS_TEXT(
      ArgumentError, "All dicts must have the same number of keys",
      gather(std::vector<Map>{{{"b", leaf(0)}, {"a", leaf(0)}}, {{"a", leaf(1)}}}, device(0)));
}

TEST_CASE("T25: replicas compute what the module computes", "[parallel][acceptance]") {
  for (const std::vector<Device>& ids : orders()) {
    const nn::Linear module = placed_on(nn::Linear(10, 5), ids.front());
    const Tensor x = random_tensor({2, 10}, DType::float32, ids.front()), expected = module(x);
    const std::vector<nn::Linear> replicas = replicate(module, ids);
    REQUIRE(replicas.size() == ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      CHECK(parameters(replicas[i]).size() == 2);
      for (const Tensor& p : parameters(replicas[i])) CHECK(p.device() == ids[i]);
      CHECK_CLOSE(replicas[i](x.to(ids[i])), expected, tolerance(DType::float32));
    }
  }
}

TEST_CASE("T26: the buffers of a replica's BatchNorm are on its device", "[parallel][acceptance]") {
  for (const std::vector<Device>& ids : orders()) {
    const WithNorm module = placed_on(WithNorm{}, ids.front());
    const std::vector<WithNorm> replicas = replicate(module, ids);
    REQUIRE(replicas.size() == ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const nn::BatchNorm2d& bn = replicas[i].bn;
      CHECK(bn.running_mean.device() == ids[i]);
      CHECK(bn.running_var.device() == ids[i]);
      CHECK(bn.num_batches_tracked.device() == ids[i]);
      CHECK_SAME_BITS(bn.running_var, module.bn.running_var);
    }
  }
}

TEST_CASE("T29: replicas are saved, attached and detached", "[parallel][acceptance]") {
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

}  // namespace braid::test::on_device
