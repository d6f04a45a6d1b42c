#include <braid/parallel/data_parallel.hpp>

#include <sstream>

#include <braid/core/memory.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/nn/activations.hpp>
#include <braid/nn/sequential.hpp>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

template <>
inline constexpr bool braid::tree::plain<std::vector<braid::Tensor>*> = true;

using namespace braid;
using namespace braid::test;
using parallel::data_parallel;
using parallel::DataParallel;

namespace {

/// Says what it was called with.
struct Probe : nn::Module {
  nn::Parameter weight{ones({1})};
  std::vector<Tensor>* calls = nullptr;  // only where one thread calls
  Tensor operator()(const Tensor& x) const {
    if (calls) calls->push_back(x);
    return x;
  }
  BRAID_FIELDS(weight, calls)
};

/// The index of the device it runs on, for each row.
struct Where : nn::Module {
  nn::Parameter weight{ones({1})};
  Tensor operator()(const Tensor& x) const { return full({x.size(0)}, weight.device().index(), {.device = x.device()}); }
  BRAID_FIELDS(weight)
};

struct Scalar : nn::Module {
  nn::Parameter weight{ones({1})};
  Tensor operator()(const Tensor& x) const { return (x * weight).sum(); }
  BRAID_FIELDS(weight)
};

struct NoInput : nn::Module {
  nn::Parameter weight{ones({3, 2})};
  Tensor operator()() const { return weight * 2.0; }
  BRAID_FIELDS(weight)
};

struct Count : nn::Module {
  nn::Parameter weight{ones({1})};
  std::string operator()(const Tensor& x) const { return str(x.size(0)); }
  BRAID_FIELDS(weight)
};

struct Arguments {
  Tensor a;
  std::vector<std::tuple<Tensor, Tensor>> pairs;
  std::optional<Tensor> c;
  double factor = 1;
  BRAID_FIELDS(a, pairs, c, factor)
};

/// T07, T14, T15: several arguments, nested ones, and nested outputs.
struct Many : nn::Module {
  nn::Linear fc{4, 3};
  std::tuple<Tensor, std::vector<Tensor>> operator()(const Tensor& a, const Tensor& b, double factor, const Arguments& more) const {
    const Tensor y = fc(a + b * factor) + std::get<1>(more.pairs.at(0)).sum(Shape{1}, true) * more.factor;
    return {y, {more.c ? y + *more.c : y, y * 2.0}};
  }
  BRAID_FIELDS(fc)
};

/// 8.5: only the middle is split.
struct Blocks : nn::Module {
  nn::Linear block1{10, 20};
  DataParallel<nn::Linear> block2{nn::Linear(20, 20)};
  nn::Linear block3{20, 20};
  Tensor operator()(const Tensor& x) const { return block3(block2(block1(x))); }
  BRAID_FIELDS(block1, block2, block3)
};

/// 8.10: the eight lines of the tutorials.
template <class M>
Tensor by_hand(const M& module, const Tensor& input, std::vector<Device> on, std::optional<Device> output_device = {}) {
  if (on.empty()) return module(input);
  auto inputs = parallel::scatter(input, on);
  on.resize(inputs.size());
  auto replicas = parallel::replicate(module, on);
  auto outputs = parallel::parallel_apply(replicas, inputs);
  return parallel::gather(outputs, output_device.value_or(on.front()));
}

std::string printed(const auto& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

}  // namespace

TEST_CASE("1.1, C8, T17: devices as devices, as indices, as names; the default is all", "[parallel][data_parallel]") {
  const int n = device_count();
  const Tensor x = ones({n, 1});
  std::vector<double> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  CHECK(numbers(DataParallel(Where{})(x)) == all);
  CHECK(numbers(DataParallel(Where{}, devices())(x)) == all);
  if (n < 2) return;
  const Tensor two = ones({2, 1});
  CHECK(numbers(DataParallel(Where{}, {0, 1})(two)) == std::vector<double>{0, 1});
  CHECK(numbers(DataParallel(Where{}, std::vector<int>{0, 1})(two)) == std::vector<double>{0, 1});
  CHECK(numbers(DataParallel(Where{}, {"cpu:0", "cpu:1"})(two)) == std::vector<double>{0, 1});
  CHECK(DataParallel(Where{}, {0, 1}, device(1))(two).device() == device(1));
  CHECK(DataParallel(Where{}, {0, 1}, {.output_device = device(1)})(two).device() == device(1));
  CHECK(numbers(DataParallel<nn::Linear>(nn::Linear(2, 2), {0, 1}, std::nullopt, 0)(ones({2, 2}))).size() == 4);
}

TEST_CASE("1.2: an empty list calls the module directly, arguments untouched", "[parallel][data_parallel]") {
  std::vector<Tensor> calls;
  Probe probe;
  probe.calls = &calls;
  const Tensor x = ones({3}, {.device = device(device_count() - 1)});
  const DataParallel model(std::move(probe), {});
  const Tensor y = model(x);
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].id() == x.id());
  CHECK(y.id() == x.id());
  CHECK(data_parallel(model.module, x, {}).id() == x.id());
}

TEST_CASE("1.3: one device: the module is moved there, and called directly with the inputs moved", "[parallel][data_parallel]") {
  for (int at = 0; at < device_count(); ++at) {
    std::vector<Tensor> calls;
    Probe probe;
    probe.calls = &calls;
    const DataParallel model(std::move(probe), {at});
    CHECK(model.module.weight.device() == device(at));
    CHECK_FALSE(model.module.weight.id()->is_replica);
    for (int from = 0; from < device_count(); ++from) {
      const Tensor x = full({3}, 5, {.device = device(from)});
      const Tensor y = model(x);
      CHECK(y.device() == device(at));
      CHECK((y.id() == x.id()) == (from == at));
      CHECK(numbers(y) == std::vector<double>{5, 5, 5});
    }
    CHECK(calls.size() == static_cast<std::size_t>(device_count()));
    const DataParallel scalar(Scalar{}, {at});
    CHECK(scalar(ones({3})).dim() == 0);                                              // no gather: a scalar stays one
    CHECK(DataParallel(Scalar{}, {at}, device(0))(ones({3})).device() == device(0));  // C7
    CHECK(DataParallel(Scalar{}, {at}, device(0))(ones({3})).dim() == 0);
    CHECK(DataParallel(Count{}, {at})(ones({3})) == "3");  // any output
  }
}

TEST_CASE("1.3: of several devices only trees can be joined", "[parallel][data_parallel][errors]") {
  if (device_count() < 2) return;
  CHECK_THROWS_TEXT(ArgumentError, "gather: expected a tree of tensors from every replica, got *string*with one device any output is fine",
                    DataParallel(Count{}, {0, 1})(ones({3})));
}

TEST_CASE("1.4, 2.1, 2.2, 11.6: several devices: the module is not moved, and has to be on the first", "[parallel][data_parallel][errors]") {
  if (device_count() < 2) return;
  DataParallel model(Net{}, {device(1), device(0)});
  CHECK(model.module.fc1.weight.device() == device(0));
  CHECK_THROWS_TEXT(
      DeviceError,
      "module must have its parameters and buffers on device cpu:1 (device_ids[0]) but found one of them on device: cpu:0 (parameter 'fc1.weight')",
      model(ones({4, 4})));
  to(model, device(1));
  const Tensor y = model(ones({4, 4}));
  CHECK(y.device() == device(1));
  Net net;
  to(net, device(1));
  DataParallel other(std::move(net), {0, 1});
  CHECK_THROWS_TEXT(DeviceError, "device cpu:0 (device_ids[0]) but found one of them on device: cpu:1 (parameter 'fc1.weight')", other(ones({4, 4})));
  CHECK_THROWS_TEXT(DeviceError, "(parameter 'fc1.weight')", data_parallel(other.module, ones({4, 4}), {0, 1}));
  CHECK_THROWS_TEXT(DeviceError, "(parameter 'fc1.weight')", data_parallel(other.module, ones({4, 4}), {0}));
  to(other.module, device(0));
  other.module.seen = nn::Buffer(zeros({1}, {.device = device(1)}));
  CHECK_THROWS_TEXT(DeviceError, "device cpu:0 (device_ids[0]) but found one of them on device: cpu:1 (buffer 'seen')", other(ones({4, 4})));
  to(other.module.seen, device(0));
  CHECK(other(ones({4, 4})).shape() == Shape{4, 3});  // the error changed nothing
}

TEST_CASE("T09: a part of the module in the wrong place", "[parallel][data_parallel][errors]") {
  if (device_count() < 2) return;
  for (int first = 0; first < 2; ++first) {
    for (int wrong = 0; wrong < 3; ++wrong) {  // the first layer, the second, none
      Net net;
      to(net, device(first));
      if (wrong == 0) to(net.fc1, device(1 - first));
      if (wrong == 1) to(net.fc2, device(1 - first));
      const DataParallel model(std::move(net), {device(first), device(1 - first)});
      for (int from = 0; from < 2; ++from) {
        const Tensor x = ones({4, 4}, {.device = device(from)});
        if (wrong == 2) {
          CHECK(model(x).device() == device(first));
          CHECK(data_parallel(model.module, x, {device(first), device(1 - first)}).device() == device(first));
        } else {
          const std::string text = str("found one of them on device: ", device(1 - first), " (parameter 'fc", wrong + 1, ".weight')");
          CHECK_THROWS_TEXT(DeviceError, text, model(x));
          CHECK_THROWS_TEXT(DeviceError, text, data_parallel(model.module, x, {device(first), device(1 - first)}));
        }
      }
    }
  }
}

TEST_CASE("1.6: a device twice is an error, and so is one that does not exist", "[parallel][data_parallel][errors]") {
  CHECK_THROWS_TEXT(DeviceError, "DataParallel: expected each device once, got cpu:0 twice", DataParallel(Where{}, {0, 0}));
  CHECK_THROWS_TEXT(DeviceError, "data_parallel: expected each device once, got cpu:0 twice", data_parallel(Where{}, ones({2, 1}), {0, 0}));
  CHECK_THROWS_TEXT(DeviceError, "device: expected one of cpu:0*got cpu:63", DataParallel(Where{}, {"cpu:63"}));
  CHECK_THROWS_TEXT(DeviceError, "device: expected one of cpu:0*got cpu:63", DataParallel(Where{}, {0}, "cpu:63"));
  CHECK_THROWS_TEXT(DeviceError, "got cuda:0", DataParallel(Where{}, {"cuda:0"}));
}

TEST_CASE("1.7: nesting shows in the type", "[parallel][data_parallel]") {
  DataParallel inner(nn::Linear(2, 2));
  DataParallel outer(inner);  // a copy, not nested
  static_assert(std::same_as<decltype(outer), DataParallel<nn::Linear>>);
  using parallel::detail::holds_data_parallel;
  static_assert(holds_data_parallel<DataParallel<nn::Linear>>());
  static_assert(holds_data_parallel<Blocks>());
  static_assert(holds_data_parallel<std::vector<std::tuple<nn::Linear, std::optional<Blocks>>>>());
  static_assert(holds_data_parallel<nn::Sequential<nn::ReLU, DataParallel<nn::Linear>>>());
  static_assert(!holds_data_parallel<nn::Sequential<nn::ReLU, nn::Linear>>());
  static_assert(!holds_data_parallel<Net>());
  CHECK(outer.module.weight.id() != inner.module.weight.id());
}

TEST_CASE("1.10: printing, and .module", "[parallel][data_parallel]") {
  const DataParallel model(nn::Linear(5, 2));
  CHECK(printed(model) == "DataParallel(\n  (module): Linear(in_features=5, out_features=2, bias=true)\n)");
  CHECK(printed(DataParallel(nn::Sequential{nn::Linear(5, 2), nn::ReLU()})) ==
        "DataParallel(\n  (module): Sequential(\n    (0): Linear(in_features=5, out_features=2, bias=true)\n    (1): ReLU()\n  )\n)");
  CHECK(model.module.weight.shape() == Shape{2, 5});
}

TEST_CASE("T07, T14, T15: several and nested arguments and outputs give what the module gives", "[parallel][data_parallel]") {
  const Many plain;
  for (int n = 1; n <= device_count(); ++n) {
    for (const std::int64_t batch : {1, 5, 16}) {
      const auto leaf = [&](std::int64_t width, std::uint64_t seed) {
        return random_tensor({batch, width}, DType::float32, device(device_count() - 1), seed).requires_grad_();
      };
      const Tensor a = leaf(4, 1), b = leaf(4, 2), c = leaf(3, 3), d = leaf(2, 4);
      const auto at_home = [](const Tensor& t) { return t.to(device(0)); };
      const Arguments there{a, {{a, d}}, c, 0.5}, here{at_home(a), {{at_home(a), at_home(d)}}, at_home(c), 0.5};
      const auto expected = plain(at_home(a), at_home(b), 3.0, here);
      const auto expected_grads =
          grad(std::get<1>(expected)[0].sum() + (std::get<0>(expected) * std::get<1>(expected)[1]).sum(), {a, b, c, d, plain.fc.weight, plain.fc.bias}, true);
      DataParallel model(clone(plain), group(n));
      for (const auto& output : {model(a, b, 3.0, there), data_parallel(model.module, std::tuple(a, b, 3.0, there), group(n))}) {
        CHECK_CLOSE(std::get<0>(output), std::get<0>(expected), tolerance(DType::float32));
        REQUIRE(std::get<1>(output).size() == 2);
        for (std::size_t i = 0; i < 2; ++i) CHECK_CLOSE(std::get<1>(output)[i], std::get<1>(expected)[i], tolerance(DType::float32));
        const auto grads = grad(std::get<1>(output)[0].sum() + (std::get<0>(output) * std::get<1>(output)[1]).sum(),
                                {a, b, c, d, model.module.fc.weight, model.module.fc.bias}, true);
        for (std::size_t k = 0; k < grads.size(); ++k) {
          CHECK(grads[k].device() == (k < 4 ? a.device() : device(0)));
          CHECK_CLOSE(grads[k].to(device(0)), expected_grads[k].to(device(0)), (Tolerance{1e-4, 1e-4}));
        }
      }
    }
  }
}

TEST_CASE("2.3, T12: inputs on any device; the output is on the output device", "[parallel][data_parallel]") {
  const nn::Linear plain(4, 3);
  for (int n = 1; n <= device_count(); ++n) {
    for (int from = 0; from < device_count(); ++from) {
      for (const Device out : {device(0), device(n - 1)}) {
        const Tensor x = random_tensor({7, 4}, DType::float32, device(from));
        const Tensor y = DataParallel(clone(plain), group(n), out)(x);
        CHECK(y.device() == out);
        CHECK_CLOSE(y.to(device(0)), plain(x.to(device(0))), tolerance(DType::float32));
      }
    }
  }
}

TEST_CASE("3.7: a scalar argument reaches every replica", "[parallel][data_parallel]") {
  struct Scaled : nn::Module {
    nn::Parameter weight{ones({1})};
    Tensor operator()(const Tensor& x, const Tensor& s) const { return x * weight * s; }
    BRAID_FIELDS(weight)
  };
  for (int n = 1; n <= device_count(); ++n) {
    const Tensor s = tensor(2.0, {.requires_grad = true}), x = counting({9, 1});
    const Tensor y = DataParallel(Scaled{}, group(n))(x, s);
    CHECK(numbers(y) == numbers(x * 2.0));
    y.sum().backward();
    CHECK(s.grad().item<double>() == 36.0);
  }
}

TEST_CASE("3.8, T16: without inputs the module runs once, on the first device", "[parallel][data_parallel]") {
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(NoInput{}, group(n));
    CHECK(numbers(model()) == std::vector<double>(6, 2.0));
    CHECK(model().device() == device(0));
    CHECK(numbers(data_parallel(model.module, std::tuple<>(), group(n))) == std::vector<double>(6, 2.0));
    model().sum().backward();
    CHECK(numbers(model.module.weight.grad()) == std::vector<double>(6, 2.0));
  }
}

TEST_CASE("3.1, 4.1: fewer rows than devices use the first devices only", "[parallel][data_parallel]") {
  for (int n = 1; n <= device_count(); ++n)
    for (const std::int64_t batch : {1, 2, 5, 9, 10, 30}) {
      std::vector<double> expected;
      const std::vector<std::int64_t> sizes = parallel::chunk_sizes(batch, static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < sizes.size(); ++i) expected.insert(expected.end(), static_cast<std::size_t>(sizes[i]), static_cast<double>(i));
      CHECK(numbers(DataParallel(Where{}, group(n))(ones({batch, 1}))) == expected);
    }
}

TEST_CASE("3.1: a batch without rows", "[parallel][data_parallel]") {
  for (int n = 1; n <= device_count(); ++n) CHECK(DataParallel(nn::Linear(4, 3), group(n))(empty({0, 4})).shape() == Shape{0, 3});
}

TEST_CASE("3.9: dim 1 is split and joined", "[parallel][data_parallel]") {
  const nn::Linear plain(4, 3);
  const Tensor x = random_tensor({6, 7, 4});
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(clone(plain), group(n), {.dim = 1});
    CHECK_CLOSE(model(x), plain(x), tolerance(DType::float32));
    CHECK_CLOSE(data_parallel(model.module, x, group(n), std::nullopt, 1), plain(x), tolerance(DType::float32));
  }
}

TEST_CASE("4.2, 4.13: what replica 0 writes in place stays; plain fields are lost", "[parallel][data_parallel]") {
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(Net{}, group(n));
    model(ones({9, 4}));
    model(ones({9, 4}));
    CHECK(numbers(model.module.seen)[0] == 2.0 * static_cast<double>(parallel::chunk_sizes(9, static_cast<std::size_t>(n))[0]));
    CHECK(model.module.calls == (n == 1 ? 2 : 0));
  }
}

TEST_CASE("4.10, T11: under NoGrad nothing is recorded, in the replicas too", "[parallel][data_parallel]") {
  struct Asks : nn::Module {
    nn::Parameter weight{ones({1})};
    Tensor operator()(const Tensor& x) const { return full({x.size(0)}, grad_enabled() ? 1 : 0, {.device = x.device()}) + (x.select(1, 0) * weight) * 0.0; }
    BRAID_FIELDS(weight)
  };
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(Asks{}, group(n));
    for (const bool on : {true, false}) {
      const GradMode mode(on);
      const Tensor y = model(ones({8, 1}));
      CHECK(numbers(y) == std::vector<double>(8, on ? 1.0 : 0.0));
      CHECK(y.requires_grad() == on);
    }
  }
}

TEST_CASE("6.3: losses taken in the replicas come back as a vector", "[parallel][data_parallel]") {
  for (int n = 2; n <= device_count(); ++n) {
    const Tensor y = DataParallel(Scalar{}, group(n))(ones({9, 1}));
    std::vector<double> expected;
    for (const std::int64_t rows : parallel::chunk_sizes(9, static_cast<std::size_t>(n))) expected.push_back(static_cast<double>(rows));
    CHECK(numbers(y) == expected);
    CHECK(DataParallel(Scalar{}, group(n))(ones({1, 1})).shape() == Shape{1});  // also where one replica runs
  }
}

TEST_CASE("8.1: the wrapper's keys begin with module.", "[parallel][data_parallel]") {
  const DataParallel model(Net{});
  std::vector<std::string> keys, plain;
  for (const auto& [name, value] : state_dict(model)) keys.push_back(name);
  for (const auto& [name, value] : state_dict(model.module)) plain.push_back("module." + name);
  CHECK(keys == plain);
  CHECK(keys.front() == "module.fc1.weight");
}

TEST_CASE("8.2: loading takes both forms, and says what it stripped", "[parallel][data_parallel]") {
  const Net source;
  DataParallel model(Net{});
  const LoadReport added = load_state_dict(model, state_dict(source));
  CHECK(added.added == "module.");
  CHECK_SAME_BITS(model.module.fc1.weight, source.fc1.weight);
  Net target;
  const LoadReport stripped = load_state_dict(target, state_dict(model));
  CHECK(stripped.stripped == "module.");
  CHECK_SAME_BITS(target.fc2.weight, source.fc2.weight);
  const LoadReport same = load_state_dict(model, state_dict(model));
  CHECK(same.added.empty());
  CHECK(same.stripped.empty());
}

TEST_CASE("8.3: train, eval, to, apply, parameters pass through", "[parallel][data_parallel]") {
  DataParallel model(Net{});
  eval(model);
  CHECK_FALSE(model.training);
  CHECK_FALSE(model.module.fc1.training);
  train(model);
  CHECK(model.module.fc2.training);
  CHECK(named_parameters(model).at(0).first == "module.fc1.weight");
  CHECK(parameters(model).at(0).id() == model.module.fc1.weight.id());
  int layers = 0;
  apply(model, [&](nn::Linear&) { ++layers; });
  CHECK(layers == 2);
  to(model, device(device_count() - 1));
  CHECK(model.module.fc1.weight.device() == device(device_count() - 1));
  to(model, DType::float64);
  CHECK(model.module.fc1.weight.dtype() == DType::float64);
}

TEST_CASE("copies have weights of their own, and the same devices", "[parallel][data_parallel]") {
  const DataParallel model(nn::Linear(4, 3), group(device_count()));
  const DataParallel copy = model, cloned = clone(model);
  const Tensor x = random_tensor({5, 4});
  CHECK_SAME_BITS(copy(x), model(x));
  CHECK_SAME_BITS(cloned(x), model(x));
  {
    const NoGrad guard;
    model.module.weight.zero_();
  }
  CHECK(numbers(copy.module.weight) == numbers(cloned.module.weight));
  CHECK(numbers(copy.module.weight) != numbers(model.module.weight));
}

TEST_CASE("8.5: one wrapped block in a model", "[parallel][data_parallel]") {
  const Blocks model;
  const Tensor x = random_tensor({30, 10});
  const Tensor plain = model.block3(model.block2.module(model.block1(x)));
  CHECK_CLOSE(model(x), plain, tolerance(DType::float32));
  square(plain).sum().backward();
  std::vector<Tensor> expected;
  for (const Tensor& p : parameters(model)) expected.push_back(p.grad());
  zero_grad(model);
  square(model(x)).sum().backward();
  for (std::size_t k = 0; k < expected.size(); ++k) CHECK_CLOSE(parameters(model)[k].grad(), expected[k], (Tolerance{1e-4, 1e-4}));
}

TEST_CASE("8.9, T08: the function gives what the module gives; one input is one argument", "[parallel][data_parallel]") {
  const nn::Linear layer(10, 5);
  const Tensor x = random_tensor({20, 10});
  for (int n = 1; n <= device_count(); ++n) {
    CHECK_CLOSE(data_parallel(layer, x, group(n)), layer(x), tolerance(DType::float32));
    CHECK_CLOSE(data_parallel(layer, std::tuple(x), group(n)), layer(x), tolerance(DType::float32));
    CHECK(data_parallel(layer, x, group(n), device(n - 1)).device() == device(n - 1));
  }
  CHECK_CLOSE(data_parallel(layer, x), layer(x), tolerance(DType::float32));
}

TEST_CASE("8.10: the eight-line version from the primitives", "[parallel][data_parallel]") {
  const nn::Linear layer(10, 4);
  for (int n = 0; n <= device_count(); ++n)
    for (const std::int64_t batch : {1, 10, 30}) {
      const Tensor x = random_tensor({batch, 10});
      CHECK_SAME_BITS(by_hand(layer, x, group(n)), data_parallel(layer, x, group(n)));
      CHECK_CLOSE(by_hand(layer, x, group(n)), layer(x), tolerance(DType::float32));
    }
}

TEST_CASE("11.7, T06: a replica that throws through DataParallel; the next forward works", "[parallel][data_parallel][errors]") {
  struct Throws : nn::Module {
    nn::Parameter weight{ones({1})};
    Tensor operator()(const Tensor& x, double limit) const {
      if (weight.device().index() >= limit) return x + ones({7, 7}, {.device = x.device()});
      return x * weight;
    }
    BRAID_FIELDS(weight)
  };
  for (int n = 2; n <= device_count(); ++n) {
    const DataParallel model(Throws{}, group(n));
    const Tensor x = ones({2 * n, 3});
    for (int first = n - 1; first >= 0; --first) {
      try {
        model(x, static_cast<double>(first));
        FAIL("nothing was thrown");
      } catch (const ReplicaError& e) {
        CHECK(matches(e.what(), str("Caught ShapeError in replica ", first, " on device ", device(first), ": ")));
        CHECK(e.failures.size() == static_cast<std::size_t>(n - first));
        CHECK(e.cause<ShapeError>() != nullptr);
      }
      const Tensor y = model(x, 99.0);
      y.sum().backward();
      CHECK(numbers(model.module.weight.grad())[0] == 6.0 * n);
      zero_grad(model);
    }
  }
}
