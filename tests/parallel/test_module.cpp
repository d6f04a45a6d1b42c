// DataParallel as a module: printing, state dicts, traversals, copies, and as a part of a model.
#include <algorithm>
#include <span>

#include "group.hpp"

namespace braid::test::on_device {

namespace {

/// Splits only the middle block.
struct Blocks : nn::Module {
  nn::Linear block1{10, 20};
  DataParallel<nn::Linear> block2{nn::Linear(20, 20)};
  nn::Linear block3{20, 20};
  Tensor operator()(const Tensor& x) const { return block3(block2(block1(x))); }
  BRAID_FIELDS(block1, block2, block3)
};

/// Has plain fields that sync_state collects.
struct Counting : nn::Module {
  nn::Linear fc{3, 2};
  mutable std::int64_t rows = 0;
  mutable std::vector<std::int64_t> heard;
  bool fails = false;
  Tensor operator()(const Tensor& x) const {
    rows += x.size(0);
    if (fails) throw ArgumentError("meant to");
    return fc(x);
  }
  void sync_state(std::span<const Counting> replicas) const {
    rows = 0;
    heard.clear();
    for (const Counting& replica : replicas) {
      rows += replica.rows;
      heard.push_back(replica.rows);
    }
  }
  BRAID_FIELDS(fc)
};

/// A class, so that no compile-time check counts its members.
struct Forgetful : nn::Module {
  nn::Linear fc1, fc2;
  Forgetful() : fc1(3, 3), fc2(3, 3) {}
  Tensor operator()(const Tensor& x) const { return fc2(fc1(x)); }
  BRAID_FIELDS(fc1)
};

/// The eight lines from the tutorials.
template <class M>
Tensor by_hand(const M& module, const Tensor& input, std::vector<Device> on,
               std::optional<Device> output_device = {}) {
  if (on.empty()) return module(input);
  auto inputs = parallel::scatter(input, on);
  on.resize(inputs.size());
  auto replicas = parallel::replicate(module, on);
  auto outputs = parallel::parallel_apply(replicas, inputs);
  return parallel::gather(outputs, output_device.value_or(on.front()));
}

}  // namespace

TEST_CASE("DataParallel: sync_state sees the replicas' plain fields", "[data_parallel]") {
  for (int n = 1; n <= device_count(); ++n) {
    Counting net = home(Counting());
    const Tensor x = ones({2 * n, 3}, {.device = device(0)});
    (void)data_parallel(net, x, group(n));
    CHECK(net.rows == 2 * n);
    // on one device the module itself ran
    CHECK(net.heard == std::vector<std::int64_t>(n > 1 ? usize(n) : 0, 2));
    net.rows = 0, net.fails = true;
    CHECK_THROWS_AS(data_parallel(net, x, group(n)), Error);
    CHECK(net.rows == (n > 1 ? 0 : 2));  // replicas that fail change nothing
    net.rows = 0, net.fails = false;
    const DeterministicDataParallel wrapped(clone(net), group(n),
                                            DeterministicOptions{.virtual_replicas = 4});
    (void)wrapped(x);
    CHECK(wrapped->rows == 2 * n);
    CHECK(wrapped->heard.size() == usize(std::min(4, 2 * n)));
    CHECK(wrapped.replicas(x).size() == wrapped->heard.size());
  }
}

TEST_CASE("DataParallel: nesting shows in the type; copies are apart", "[data_parallel]") {
  using parallel::detail::holds_data_parallel;
  static_assert(holds_data_parallel<DataParallel<nn::Linear>>());
  static_assert(holds_data_parallel<Blocks>());
  static_assert(holds_data_parallel<std::vector<std::tuple<nn::Linear, std::optional<Blocks>>>>());
  static_assert(holds_data_parallel<nn::Sequential<nn::ReLU, DataParallel<nn::Linear>>>());
  static_assert(!holds_data_parallel<nn::Sequential<nn::ReLU, nn::Linear>>());
  static_assert(!holds_data_parallel<Net>());
  const DataParallel model(home(nn::Linear(4, 3)), group(device_count()));
  const DataParallel copy(model);  // not nested
  static_assert(std::same_as<decltype(copy), decltype(model)>);
  const DataParallel cloned = clone(model);
  const Tensor x = random_tensor({5, 4});
  CHECK_SAME_BITS(copy(x), model(x));  // the same devices
  CHECK_SAME_BITS(cloned(x), model(x));
  unrecorded([&] { model.module.weight.zero_(); });
  CHECK(numbers(copy.module.weight) == numbers(cloned.module.weight));
  CHECK(numbers(copy.module.weight) != numbers(model.module.weight));
}

TEST_CASE("DataParallel: printing, and .module", "[data_parallel]") {
  const DataParallel model(home(nn::Linear(5, 2)));
  CHECK(str(model) ==
        "DataParallel(\n  (module): Linear(in_features=5, out_features=2, bias=true)\n)");
  CHECK(str(DataParallel(home(nn::Sequential{nn::Linear(5, 2), nn::ReLU()}))) ==
        "DataParallel(\n  (module): Sequential(\n    (0): Linear(in_features=5, out_features=2, "
        "bias=true)\n    (1): ReLU()\n  )\n)");
  CHECK(model.module.weight.shape() == Shape{2, 5});
}

TEST_CASE("DataParallel: keys begin with module.; loading takes both forms", "[data_parallel]") {
  const Net source;
  DataParallel model(home(Net{}));
  std::vector<std::string> keys, plain;
  for (const auto& [name, value] : state_dict(model)) keys.push_back(name);
  for (const auto& [name, value] : state_dict(model.module)) plain.push_back("module." + name);
  CHECK(keys == plain);
  CHECK(keys.front() == "module.fc1.weight");
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

TEST_CASE("DataParallel: train, eval, to, apply, parameters pass through", "[data_parallel]") {
  DataParallel model(home(Net{}));
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

TEST_CASE("DataParallel: a field that is missing from BRAID_FIELDS is an error on one device too",
          "[data_parallel][errors]") {
  for (int n = 1; n <= std::min(2, device_count()); ++n) {
    CHECK_THROWS_TEXT(ArgumentError, "Forgetful: expected every field*got 2 of 4 parameters",
                      (void)DataParallel<Forgetful>(Forgetful(), group(n))(ones({4, 3})));
  }
}

TEST_CASE("DataParallel: one wrapped block in a model", "[data_parallel]") {
  const Blocks model = home(Blocks());
  const Tensor x = random_tensor({30, 10});
  const Tensor plain = model.block3(model.block2.module(model.block1(x)));
  CHECK_CLOSE(model(x), plain, tolerance(DType::float32));
  square(plain).sum().backward();
  const std::vector<Tensor> expected = gradients_of(parameters(model));
  zero_grad(model);
  square(model(x)).sum().backward();
  check_close(gradients_of(parameters(model)), expected, {1e-4, 1e-4});
}

TEST_CASE("DataParallel: the eight-line version from the primitives", "[data_parallel]") {
  const nn::Linear layer = home(nn::Linear(10, 4));
  for (int n = 0; n <= device_count(); ++n)
    for (const std::int64_t batch : {1, 10, 30}) {
      const Tensor x = random_tensor({batch, 10});
      CHECK_SAME_BITS(by_hand(layer, x, group(n)), data_parallel(layer, x, group(n)));
      CHECK_CLOSE(by_hand(layer, x, group(n)), layer(x), tolerance(DType::float32));
    }
}

}  // namespace braid::test::on_device
