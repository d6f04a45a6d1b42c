// DataParallel's devices: how they are given, where module, input and output must be, and which
// device gets which rows.
#include "group.hpp"

template <> inline constexpr bool braid::tree::plain<std::vector<braid::Tensor>*> = true;

namespace braid::test::on_device {

using parallel::DeviceList;

namespace {

/// Records the tensors that it was called with.
struct Probe : nn::Module {
  nn::Parameter weight{ones({1})};
  std::vector<Tensor>* calls = nullptr;  // only used if one thread calls
  Tensor operator()(const Tensor& x) const {
    if (calls) calls->push_back(x);
    return x;
  }
  BRAID_FIELDS(weight, calls)
};

const auto scalar = [] {
  return home(Made([](const Tensor& weight, const Tensor& x) { return (x * weight).sum(); }));
};

std::atomic<int> runs{0};
struct NoInput : nn::Module {
  Tensor operator()() const {
    ++runs;
    const Tensor t = counting({2, 3});
    return t + (t * -1.0 + 1.0);
  }
  BRAID_FIELDS()
};

/// Returns a reference to its argument.
struct Identity : nn::Module {
  const Tensor& operator()(const Tensor& x) const { return x; }
  BRAID_FIELDS()
};

/// Its output is no tree, and cannot be copied.
struct Boxed : nn::Module {
  std::unique_ptr<int> operator()(const Tensor& x) const {
    ++runs;
    return std::make_unique<int>(static_cast<int>(x.size(0)));
  }
  BRAID_FIELDS()
};

enum class Place : std::uint8_t { cpu, cuda0, cuda1 };
/// PyTorch's cuda:0 and cuda:1 are device(0) and device(1). Its CPU is a third device. If there are
/// only two CPU devices, it is the one that is not first in the list, which is wrong too.
Device at(Place place, Device first) {
  if (place == Place::cuda0) return device(0);
  if (place == Place::cuda1) return device(1);
  return third().value_or(device(1 - first.index()));
}

struct Placement {
  bool sequential;             ///< a Sequential of the layers, else a single layer
  std::vector<Place> layers;   ///< the place of each
  std::optional<Place> moved;  ///< where all are moved after wrapping
  Place input;
  std::vector<int> ids;  ///< empty: all devices
  bool fails;
};
std::vector<Placement> placements() {
  constexpr Place cpu = Place::cpu, cuda0 = Place::cuda0, cuda1 = Place::cuda1;
  return {{false, {cpu}, {}, cpu, {}, true},
          {false, {cuda1}, {}, cuda0, {}, true},
          {false, {cuda0}, {}, cuda0, {1, 0}, true},
          {false, {cuda0}, {}, cuda0, {}, false},
          {false, {cpu}, cuda0, cuda0, {}, false},
          {false, {cuda1}, {}, cuda1, {1, 0}, false},
          {false, {cpu}, cuda1, cuda1, {1, 0}, false},
          {true, {cpu}, {}, cpu, {}, true},
          {true, {cpu}, {}, cpu, {0, 1}, true},
          {true, {cpu}, {}, cpu, {1, 0}, true},
          {true, {cpu, cuda0}, {}, cpu, {}, true},
          {true, {cpu, cuda0}, {}, cpu, {0, 1}, true},
          {true, {cpu, cuda0}, {}, cpu, {1, 0}, true},
          {true, {cuda0, cuda1}, {}, cpu, {}, true},
          {true, {cuda0, cuda1}, {}, cpu, {0, 1}, true},
          {true, {cuda0, cuda1}, {}, cpu, {1, 0}, true},
          {true, {cuda0, cuda0}, {}, cpu, {}, false},
          {true, {cuda0, cuda0}, {}, cpu, {0, 1}, false},
          {true, {cuda0, cuda0}, {}, cpu, {1, 0}, true},
          {true, {cpu, cpu}, {}, cpu, {1, 0}, true},
          {true, {cuda1, cuda1}, {}, cpu, {1, 0}, false}};
}

template <class M> void check_placement(const Placement& c, M model) {
  const Device first = c.ids.empty() ? device(0) : device(c.ids.front());
  const Tensor x = random_tensor({2, 2}, DType::float32, at(c.input, first));
  std::size_t k = 0;
  std::optional<Device> found;  // the device of the first wrong one
  std::string name;
  apply(model, [&](nn::Linear& layer) {
    const Device place = at(c.moved.value_or(c.layers.at(k)), first);
    to(layer, at(c.layers.at(k), first));
    if (!found && place != first) found = place, name = c.sequential ? str(k, ".weight") : "weight";
    ++k;
  });
  REQUIRE(found.has_value() == c.fails);
  DataParallel wrapped =
      c.ids.empty() ? DataParallel(clone(model)) : DataParallel(clone(model), c.ids);
  if (c.moved) {
    to(wrapped, at(*c.moved, first));
    to(model, at(*c.moved, first));
  }
  const DeviceList ids = c.ids.empty() ? DeviceList(devices()) : DeviceList(c.ids);
  if (c.fails) {
    const std::string text = str("module must have its parameters and buffers on device ", first,
                                 " (device_ids[0]) but found one of them on device: ", *found,
                                 " (parameter '", name, "')");
    CHECK_THROWS_TEXT(DeviceError, text, wrapped(x));
    CHECK_THROWS_TEXT(DeviceError, text, data_parallel(model, x, ids));
    CHECK_THROWS_TEXT(DeviceError, text, data_parallel(model, x, {first}));
    return;
  }
  for (const Tensor& y : {wrapped(x), data_parallel(model, x, ids)}) {
    CHECK(y.device() == first);
    CHECK_CLOSE(y, model(x.to(first)), tolerance(DType::float32));
  }
}

/// The results of the class and the function.
template <class M>
std::vector<Tensor> both_ways(const M& module, const Tensor& x, const DeviceList& ids, Device out) {
  return {data_parallel(module, x, ids, out), DataParallel(clone(module), ids, out)(x)};
}

}  // namespace

ACCEPTANCE("T08: the function on a small layer") {
  const nn::Linear layer = home(nn::Linear(10, 5));
  const Tensor x = random_tensor({20, 10});
  for (const std::vector<Device>& ids : orders()) {
    if (ids.front() != device(0)) continue;
    CHECK_CLOSE(data_parallel(layer, x, ids), layer(x), tolerance(DType::float32));
    CHECK_CLOSE(data_parallel(layer, std::tuple(x), ids), layer(x), tolerance(DType::float32));
    CHECK(data_parallel(layer, x, ids, ids.back()).device() == ids.back());
  }
}

ACCEPTANCE("T09: module, first layer, second layer, each in every place") {
  if (device_count() < 2) return;
  CHECK(placements().size() == 21);
  int number = 0;
  for (const Placement& c : placements()) {
    INFO("case " << ++number);
    if (!c.sequential) check_placement(c, nn::Linear(2, 2));
    else if (c.layers.size() == 1) check_placement(c, nn::Sequential{nn::Linear(2, 2)});
    else check_placement(c, nn::Sequential{nn::Linear(2, 2), nn::Linear(2, 2)});
  }
}

ACCEPTANCE("T16: a module without inputs runs once, on the first device") {
  const auto check_output = [](const Tensor& output) {
    CHECK(output.device() == device(0));
    CHECK(output.shape() == Shape{2, 3});
    CHECK(numbers(output) == std::vector<double>(6, 1.0));
    CHECK(runs.exchange(0) == 1);
  };
  runs = 0;
  const Made weighted = home(Made([](const Tensor& weight) { return weight * NoInput{}(); }));
  for (const std::vector<Device>& ids : orders()) {
    if (ids.front() != device(0)) continue;
    check_output(DataParallel(NoInput{}, ids)());
    check_output(data_parallel(NoInput{}, std::tuple<>(), ids));  // None and () are the same here
    const DataParallel model(clone(weighted), ids);
    const Tensor output = model();
    check_output(output);
    output.sum().backward();
    CHECK(numbers(model.module.weight.grad()) == std::vector<double>{6});
  }
}

ACCEPTANCE("T17: devices as indices and as devices") {
  if (device_count() < 2) return;
  const nn::Linear layer = home(nn::Linear(10, 5));
  const Tensor x = random_tensor({20, 10}).requires_grad_();
  const Tensor expected = layer(x);
  const Tensor expected_gradient = grad(expected.sum(), {x})[0];
  const DeviceList forms[]{{0, 1},
                           std::vector<int>{0, 1},
                           {device(0), device(1)},
                           {here("cpu:0"), here("cpu:1")},
                           group(2)};
  for (const DeviceList& ids : forms) {
    CHECK(ids.list() == group(2));
    CHECK(numbers(DataParallel(home(Where{}), ids)(ones({2, 1}))) == std::vector<double>{0, 1});
    // The output device is a Device, because an index would not tell its type.
    for (const Device out : {device(0), device(1), Device(here("cpu:0")), host()}) {
      std::vector<Tensor> outputs = both_ways(layer, x, ids, out);
      outputs.push_back(
          DataParallel(clone(layer), ids, DataParallelOptions{.output_device = out})(x));
      outputs.push_back(DataParallel<nn::Linear>(clone(layer), ids, out, 0)(x));
      for (const Tensor& output : outputs) {
        CHECK(output.device() == out);
        CHECK_CLOSE(output, expected, tolerance(DType::float32));
        CHECK_CLOSE(grad(output.sum(), {x})[0], expected_gradient, tolerance(DType::float32));
      }
    }
  }
}

ACCEPTANCE("C7: the output is on the requested device, of one device too") {
  // The module's intermediate tensors must be on the replica's device.
  const Made module = home(
      Made([](const Tensor& weight, const Tensor& x) { return (x * weight).sum(Shape{0}); }, {3}));
  const Tensor x = ones({10, 3});
  std::vector<Device> outs = group(up_to(2));
  if (third()) outs.push_back(*third());
  outs.push_back(host());
  const auto chunks = static_cast<std::int64_t>(chunk_sizes(10, usize(device_count())).size());
  for (const Device out : outs) {
    const Tensor joined = data_parallel(module, x, devices(), out),
                 alone = data_parallel(module, x, {device(0)}, out);
    CHECK(joined.device() == out);
    CHECK(joined.shape() == Shape{3 * chunks});
    CHECK(joined.sum().item<double>() == 30.0);
    CHECK(alone.device() == out);
    CHECK(numbers(alone) == std::vector<double>(3, 10.0));
  }
}

ACCEPTANCE("C8: all devices are used") {
  // LibTorch's 10 rows on 8 devices are five chunks; fewer rows use the first devices only
  for (int n = 1; n <= device_count(); ++n)
    for (const std::int64_t batch : {1, 2, 5, 9, 10, 30, 2 * n}) {
      std::vector<double> expected;
      double at = 0;
      for (const std::int64_t rows : chunk_sizes(batch, usize(n)))
        expected.insert(expected.end(), usize(rows), at++);
      CHECK(numbers(data_parallel(home(Where{}), ones({batch, 1}), group(n))) == expected);
      if (n == device_count())
        CHECK(numbers(DataParallel(home(Where{}))(ones({batch, 1}))) == expected);
    }
}

TEST_CASE("DataParallel: an empty list calls the module directly", "[data_parallel]") {
  std::vector<Tensor> calls;
  Probe probe;
  probe.calls = &calls;
  const Tensor x = ones({3}, {.device = device(device_count() - 1)});
  const DataParallel model(home(std::move(probe)), {});
  CHECK(model(x).id() == x.id());
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].id() == x.id());
  CHECK(data_parallel(model.module, x, {}).id() == x.id());
}

TEST_CASE("DataParallel on one device moves the module there, and inputs", "[data_parallel]") {
  for (int at = 0; at < device_count(); ++at) {
    std::vector<Tensor> calls;
    Probe probe;
    probe.calls = &calls;
    const DataParallel model(home(std::move(probe)), {at});
    CHECK(model.module.weight.device() == device(at));
    CHECK_FALSE(nn::detail::has_mark(model.module.weight, nn::detail::Mark::replica));
    for (int from = 0; from < device_count(); ++from) {
      const Tensor x = full({3}, 5.0, {.device = device(from)});
      const Tensor y = model(x);
      CHECK(y.device() == device(at));
      CHECK((y.id() == x.id()) == (from == at));
      CHECK(numbers(y) == std::vector<double>{5, 5, 5});
    }
    CHECK(calls.size() == usize(device_count()));
    // no gather: a scalar stays one, and any output is fine
    CHECK(DataParallel(scalar(), {at})(ones({3})).dim() == 0);
    const Tensor out = DataParallel(scalar(), {at}, device(0))(ones({3}));
    CHECK(out.device() == device(0));
    CHECK(out.dim() == 0);
    const Made count([](const Tensor&, const Tensor& x) { return str(x.size(0)); });
    CHECK(DataParallel(home(clone(count)), {at})(ones({3})) == "3");
    CHECK(*DataParallel(Boxed(), {at})(ones({3})) == 3);
    for (int from = 0; from < device_count(); ++from)
      CHECK(numbers(DataParallel(Identity(), {at})(full({2}, 7.0, {.device = device(from)}))) ==
            std::vector<double>{7, 7});
  }
}

TEST_CASE("DataParallel: an output that cannot be gathered fails before the model runs",
          "[data_parallel]") {
  if (device_count() == 1) return;
  runs = 0;
  const DataParallel model(Boxed(), group(2));
  CHECK_THROWS_TEXT(ArgumentError, "gather: expected a tree of tensors from every replica, got *",
                    model(ones({4})));
  CHECK(runs == 0);
  const auto outputs = model.replicas(ones({4}));
  CHECK(runs == 2);
  CHECK(*outputs.at(1) == 2);
}

TEST_CASE("DataParallel: what replica 0 writes in place stays, plain fields do not",
          "[data_parallel]") {
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(home(Net{}), group(n));
    for (int i = 0; i < 2; ++i) (void)model(ones({9, 4}));
    CHECK(numbers(model.module.seen)[0] == 2.0 * static_cast<double>(chunk_sizes(9, usize(n))[0]));
    CHECK(model.module.calls == (n == 1 ? 2 : 0));
  }
}

TEST_CASE("DataParallel: inputs on any device, losses, no rows, dim 1", "[data_parallel]") {
  const nn::Linear plain = home(nn::Linear(4, 3));
  const Tensor block = random_tensor({6, 7, 4});
  for (int n = 1; n <= device_count(); ++n) {
    for (int from = 0; from < device_count(); ++from) {
      const Tensor x = random_tensor({7, 4}, DType::float32, device(from));
      for (const Device out : {device(0), device(n - 1)}) {
        const Tensor y = DataParallel(clone(plain), group(n), out)(x);
        CHECK(y.device() == out);
        CHECK_CLOSE(y, plain(x.to(device(0))), tolerance(DType::float32));
      }
    }
    CHECK(DataParallel(clone(plain), group(n))(empty({0, 4})).shape() == Shape{0, 3});
    CHECK_CLOSE(DataParallel(clone(plain), group(n), {.dim = 1})(block), plain(block),
                tolerance(DType::float32));
    CHECK_CLOSE(data_parallel(plain, block, group(n), std::nullopt, 1), plain(block),
                tolerance(DType::float32));
    if (n == 1) continue;
    // scalars of the replicas come back as a vector, also where one replica runs
    std::vector<double> losses;
    for (const std::int64_t rows : chunk_sizes(9, usize(n)))
      losses.push_back(static_cast<double>(rows));
    CHECK(numbers(DataParallel(scalar(), group(n))(ones({9, 1}))) == losses);
    CHECK(DataParallel(scalar(), group(n))(ones({1, 1})).shape() == Shape{1});
  }
}

TEST_CASE("DataParallel: a device twice, or one that does not exist", "[data_parallel]") {
  CHECK_THROWS_TEXT(DeviceError, here("DataParallel: expected each device once, got cpu:0 twice"),
                    DataParallel(home(Where{}), {0, 0}));
  CHECK_THROWS_TEXT(DeviceError, here("data_parallel: expected each device once, got cpu:0 twice"),
                    data_parallel(Where{}, ones({2, 1}), {0, 0}));
  CHECK_THROWS_TEXT(DeviceError, "device: expected one of cpu:0*got cpu:63",
                    DataParallel(home(Where{}), {"cpu:63"}));
  CHECK_THROWS_TEXT(DeviceError, "device: expected one of cpu:0*got cpu:63",
                    DataParallel(home(Where{}), {0}, "cpu:63"));
  CHECK_THROWS_TEXT(DeviceError, "got cuda:63", DataParallel(home(Where{}), {"cuda:63"}));
}

}  // namespace braid::test::on_device
