// Acceptance: the tests of LibTorch's C++ DataParallel.
#include <braid/core/ops/softmax.hpp>
#include <braid/nn/conv.hpp>
#include <braid/nn/losses.hpp>
#include <braid/nn/optim.hpp>
#include <braid/parallel/parallel.hpp>

#include <stdexcept>

#include "acceptance.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::data_parallel;
using parallel::DataParallel;
using parallel::parallel_apply;

namespace {

/// Makes its tensor where factories do, which is not the replica's device.
struct Elsewhere : nn::Module {
  Tensor operator()(const Tensor&) const { return braid::ones({5}, {.dtype = DType::int32}); }
  BRAID_FIELDS()
};

struct Badness : nn::Module {
  Tensor operator()(const Tensor&) const { throw std::runtime_error("Badness!"); }
  BRAID_FIELDS()
};

/// Its intermediate tensors have to be on the replica's device.
struct Intermediate : nn::Module {
  nn::Parameter weight{ones({3})};
  Tensor operator()(const Tensor& x) const { return (x * weight).sum(Shape{0}); }
  BRAID_FIELDS(weight)
};

struct Index : nn::Module {
  nn::Parameter weight{ones({1})};
  Tensor operator()(const Tensor&) const {
    return full({}, weight.device().index(), {.device = weight.device(), .dtype = DType::int64});
  }
  BRAID_FIELDS(weight)
};

struct ConvNet : nn::Module {
  nn::Conv2d conv{2, 2, 2};
  nn::Linear fc{8, 2};
  Tensor operator()(const Tensor& x) const { return log_softmax(fc(relu(conv(x)).flatten(1)), 1); }
  BRAID_FIELDS(conv, fc)
};

/// device(0), device(1), and a third one, or the host, where there is one.
std::vector<Device> several() {
  std::vector<Device> list = group(std::min(2, device_count()));
  if (third()) list.push_back(*third());
  return list;
}

}  // namespace

TEST_CASE("C1: scatter has a gradient", "[parallel][acceptance]") {
  for (const std::vector<Device>& ids : orders_of_two()) {
    const Tensor x = braid::ones({10}, {.requires_grad = true});
    const std::vector<Tensor> output = parallel::scatter(x, ids);
    REQUIRE(output.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(output[i].device() == ids[i]);
      CHECK(numbers(output[i]) == std::vector<double>(5, 1.0));
    }
    const Tensor sum = output[0].to(ids[1]) + output[1];
    sum.backward(ones({5}, {.device = ids[1]}));
    CHECK(x.grad().device() == host());
    CHECK(numbers(x.grad()) == std::vector<double>(10, 1.0));
  }
}

TEST_CASE("C2: gather has a gradient", "[parallel][acceptance]") {
  if (device_count() < 2) return;
  const Tensor a = ones({5}, {.device = device(0), .requires_grad = true}),
               b = full({5}, 2, {.device = device(1), .requires_grad = true});
  const Tensor output = parallel::gather(std::vector<Tensor>{a, b}, device(1));
  CHECK(output.shape() == Shape{10});
  CHECK(output.device() == device(1));
  CHECK_SAME_BITS(output.detach().narrow(0, 0, 5), a.detach());
  CHECK_SAME_BITS(output.detach().narrow(0, 5, 5), b.detach());
  output.backward(ones({10}, {.device = device(1)}));
  for (const Tensor& part : {a, b}) {
    REQUIRE(part.grad().defined());
    CHECK(part.grad().device() == part.device());
    CHECK(numbers(part.grad()) == std::vector<double>(5, 1.0));
  }
}

TEST_CASE("C3: replicas have equal values in memory of their own", "[parallel][acceptance]") {
  // LibTorch clones for the first device too, and loses what it writes; here replica 0 shares the
  // module's memory, as in Python (4.2).
  for (const std::vector<Device>& ids : orders()) {
    const nn::Linear module = placed_on(nn::Linear(3, 4), ids.front());
    const std::vector<nn::Linear> replicas = parallel::replicate(module, ids);
    REQUIRE(replicas.size() == ids.size());
    const std::vector<Tensor> original = parameters(module);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::vector<Tensor> copies = parameters(replicas[i]);
      REQUIRE(copies.size() == original.size());
      for (std::size_t k = 0; k < copies.size(); ++k) {
        CHECK(copies[k].device() == ids[i]);
        CHECK_SAME_BITS(copies[k].detach(), original[k].detach());
        CHECK((copies[k].id()->data() == original[k].id()->data()) == (i == 0));
      }
    }
  }
}

TEST_CASE("C4: parallel_apply on two devices and a third", "[parallel][acceptance]") {
  const nn::Linear a(3, 4);
  const Tensor expected = a(braid::ones({2, 3}));
  std::vector<nn::Linear> modules;
  std::vector<Tensor> inputs;
  for (const Device d : several()) {
    modules.push_back(placed_on(clone(a), d));
    inputs.push_back(ones({2, 3}, {.device = d}));
  }
  const std::vector<Tensor> outputs = parallel_apply(modules, inputs);
  REQUIRE(outputs.size() == several().size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CHECK(outputs[i].device() == several()[i]);
    CHECK_CLOSE(outputs[i], expected, tolerance(DType::float32));
  }
}

TEST_CASE("C5: parallel_apply moves the outputs to the devices that it is given",
          "[parallel][acceptance]") {
  std::vector<Device> ids = several();
  std::swap(ids.front(), ids[ids.size() > 1 ? 1 : 0]);
  const std::vector<Tensor> outputs = parallel_apply(
      std::vector<Elsewhere>(ids.size()), std::vector<Tensor>(ids.size(), braid::zeros({})), ids);
  REQUIRE(outputs.size() == ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CHECK(outputs[i].device() == ids[i]);
    CHECK(outputs[i].dtype() == DType::int32);
    CHECK(numbers(outputs[i]) == std::vector<double>(5, 1.0));
  }
}

TEST_CASE("C6: the text of an exception", "[parallel][acceptance]") {
  // LibTorch throws the original; here its text comes after the replica and the device, and the
  // original is below.
  const Tensor x = ones({10, 3});
  const auto call = [&] { return data_parallel(Badness{}, x); };
  if (device_count() == 1) {
    CHECK_THROWS_TEXT(std::runtime_error, "Badness!", call());
    return;
  }
  CHECK_THROWS_TEXT(
      ReplicaError,
      str("Caught std::runtime_error in replica 0 on device ", device(0), ": Badness!*"), call());
  try {
    call();
  } catch (const ReplicaError& e) {
    REQUIRE(e.cause<std::runtime_error>() != nullptr);
    CHECK(std::string(e.cause<std::runtime_error>()->what()) == "Badness!");
  }
}

TEST_CASE("C7: the output is on the requested device, of one device too",
          "[parallel][acceptance]") {
  const Intermediate module = home(Intermediate{});
  const Tensor x = ones({10, 3});
  std::vector<Device> outs = several();
  outs.push_back(host());
  for (const Device out : outs) {
    const Tensor joined = data_parallel(module, x, devices(), out),
                 alone = data_parallel(module, x, {device(0)}, out);
    CHECK(joined.device() == out);
    CHECK(joined.shape() ==
          Shape{3 * static_cast<std::int64_t>(parallel::chunk_sizes(10, devices().size()).size())});
    CHECK(joined.sum().item<double>() == 30.0);
    CHECK(alone.device() == out);
    CHECK(numbers(alone) == std::vector<double>(3, 10.0));
  }
}

TEST_CASE("C8: all devices are used", "[parallel][acceptance]") {
  const int n = device_count();
  // LibTorch's 10 rows on 8 devices would be five chunks
  const Tensor output = data_parallel(home(Index{}), ones({2 * n, 3}));
  REQUIRE(output.numel() == n);
  std::vector<double> expected;
  for (int i = 0; i < n; ++i) expected.push_back(device(i).index());
  CHECK(numbers(output) == expected);
}

TEST_CASE("C9: a convolution and a layer train as on one device", "[parallel][acceptance]") {
  for (const std::vector<Device>& ids : orders()) {
    const ConvNet start = placed_on(ConvNet{}, ids.front());
    ConvNet plain = clone(start), split = clone(start);
    DataParallel wrapped(clone(start), ids);
    const auto step = [](const auto& module, const Tensor& output) {
      optim::SGD optimizer(parameters(module), {.lr = 0.1});
      nn::mse_loss(output, zeros_like(output)).backward();
      optimizer.step();  // the gradients are not removed: they accumulate
    };
    for (int i = 0; i < 3; ++i) {
      const Tensor x = random_tensor({cut(16, 4), 2, 3, 3}, DType::float32, ids.front(),
                                     static_cast<std::uint64_t>(i + 1));
      step(plain, plain(x));
      step(split, data_parallel(split, x, ids));
      step(wrapped, wrapped(x));
      const std::vector<Tensor> expected = parameters(plain);
      REQUIRE(expected.size() == 4);
      for (std::size_t k = 0; k < expected.size(); ++k) {
        CHECK_FALSE(equal(expected[k], parameters(start)[k]));
        CHECK_CLOSE(parameters(split)[k], expected[k], (Tolerance{1e-5, 1e-6}));
        CHECK_CLOSE(parameters(wrapped)[k], expected[k], (Tolerance{1e-5, 1e-6}));
      }
    }
  }
}

}  // namespace braid::test::on_device
