// Acceptance: which devices there are, and where module, input and output have to be.
#include <braid/nn/sequential.hpp>
#include <braid/parallel/data_parallel.hpp>

#include <atomic>
#include <optional>
#include <tuple>

#include "acceptance.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::data_parallel;
using parallel::DataParallel;
using parallel::DeviceList;

namespace {

enum class Place : std::uint8_t { cpu, cuda0, cuda1 };
/// What PyTorch calls cuda:0 and cuda:1 is device(0) and device(1). What it calls the CPU is, where
/// two CPU devices are all there are, the one of them that is not the first of the list: wrong all
/// the same.
Device at(Place place, Device first) {
  if (place == Place::cuda0) return device(0);
  if (place == Place::cuda1) return device(1);
  return third().value_or(device(1 - first.index()));
}

struct Placement {
  bool sequential;             ///< a Sequential of the layers, else the one layer
  std::vector<Place> layers;   ///< where each is
  std::optional<Place> moved;  ///< where all are moved after they were wrapped
  Place input;
  std::vector<int> ids;  ///< none: all devices
  bool fails;
};
const std::vector<Placement>& placements() {
  constexpr Place cpu = Place::cpu, cuda0 = Place::cuda0, cuda1 = Place::cuda1;
  static const std::vector<Placement> list{
      {false, {cpu}, {}, cpu, {}, true},
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
      {true, {cuda1, cuda1}, {}, cpu, {1, 0}, false},
  };
  return list;
}

template <class M> void check_placement(const Placement& c, M model) {
  const Device first = c.ids.empty() ? device(0) : device(c.ids.front());
  const Tensor x = random_tensor({2, 2}, DType::float32, at(c.input, first));
  std::size_t k = 0;
  std::optional<Device> found;  // the first wrong one
  apply(model, [&](nn::Linear& layer) {
    const Device place = at(c.moved.value_or(c.layers.at(k)), first);
    to(layer, at(c.layers.at(k++), first));
    if (!found && place != first) found = place;
  });
  REQUIRE(found.has_value() == c.fails);
  DataParallel wrapped =
      c.ids.empty() ? DataParallel(clone(model)) : DataParallel(clone(model), c.ids);
  if (c.moved) {
    to(wrapped, at(*c.moved, first));
    to(model, at(*c.moved, first));
  }
  const auto function = [&] {
    return c.ids.empty() ? data_parallel(model, x) : data_parallel(model, x, c.ids);
  };
  if (c.fails) {
    const std::string text = str("module must have its parameters and buffers on device ", first,
                                 " (device_ids[0]) but found one of them on device: ", *found);
    CHECK_THROWS_TEXT(DeviceError, text, wrapped(x));
    CHECK_THROWS_TEXT(DeviceError, text, function());
    return;
  }
  for (const Tensor& y : {wrapped(x), function()}) {
    CHECK(y.device() == first);
    CHECK_CLOSE(y, model(x.to(first)), tolerance(DType::float32));
  }
}

std::atomic<int> runs{0};
struct NoInput : nn::Module {
  Tensor operator()() const {
    ++runs;
    const Tensor t = counting({2, 3});
    return t + (t * -1.0 + 1.0);
  }
  BRAID_FIELDS()
};

struct Asserts : nn::Module {
  Tensor operator()(const Tensor& x) const {
    if (grad_enabled()) throw std::logic_error("expected no gradients");
    return x;
  }
  BRAID_FIELDS()
};

}  // namespace

TEST_CASE("T08: the function on a small layer", "[parallel][acceptance]") {
  const nn::Linear layer = home(nn::Linear(10, 5));
  const Tensor x = random_tensor({20, 10});
  for (const std::vector<Device>& ids : orders()) {
    if (ids.front() != device(0)) continue;
    CHECK_CLOSE(data_parallel(layer, x, ids), layer(x), tolerance(DType::float32));
  }
}

TEST_CASE("T09: module, first layer, second layer, each in every place", "[parallel][acceptance]") {
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

TEST_CASE("T11: without gradients, in the replicas too; what they assert reaches the caller",
          "[parallel][acceptance]") {
  const Tensor x = random_tensor({20, 10});
  for (const std::vector<Device>& ids : orders()) {
    const DataParallel model(Asserts{}, ids);
    {
      const NoGrad guard;
      CHECK_SAME_BITS(data_parallel(Asserts{}, x, ids), x);
      CHECK_SAME_BITS(model(x), x);
    }
    if (ids.size() == 1) {  // the module itself
      CHECK_THROWS_TEXT(std::logic_error, "expected no gradients",
                        data_parallel(Asserts{}, x, ids));
      CHECK_THROWS_TEXT(std::logic_error, "expected no gradients", model(x));
      continue;
    }
    for (const bool function : {true, false}) {
      try {
        function ? data_parallel(Asserts{}, x, ids) : model(x);
        FAIL("nothing was thrown");
      } catch (const ReplicaError& e) {
        CHECK(e.cause<std::logic_error>() != nullptr);
        CHECK(e.failures.size() == parallel::chunk_sizes(20, ids.size()).size());
      }
    }
  }
}

TEST_CASE("T16: a module without inputs runs once, on the first device", "[parallel][acceptance]") {
  const auto check_output = [](const Tensor& output) {
    CHECK(output.device() == device(0));
    CHECK(output.shape() == Shape{2, 3});
    CHECK(numbers(output) == std::vector<double>(6, 1.0));
    CHECK(runs.exchange(0) == 1);
  };
  runs = 0;
  for (const std::vector<Device>& ids : orders()) {
    if (ids.front() != device(0)) continue;
    check_output(DataParallel(NoInput{}, ids)());
    check_output(data_parallel(NoInput{}, std::tuple<>(), ids));  // None and () are one thing here
  }
}

TEST_CASE("T17: devices as indices and as devices", "[parallel][acceptance]") {
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
    // The output device is a Device: a bare index would not say of which type.
    for (const Device out : {device(0), device(1), Device(here("cpu:0")), host()}) {
      for (const Tensor& output :
           {data_parallel(layer, x, ids, out), DataParallel(clone(layer), ids, out)(x)}) {
        CHECK(output.device() == out);
        CHECK_CLOSE(output, expected, tolerance(DType::float32));
        CHECK_CLOSE(grad(output.sum(), {x})[0], expected_gradient, tolerance(DType::float32));
      }
    }
  }
}

}  // namespace braid::test::on_device
