// Modules and devices that DataParallel refuses, and replicas that throw.
#include <braid/parallel/data_parallel.hpp>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::data_parallel;
using parallel::DataParallel;

namespace {

/// The index of the device it runs on, for each row.
struct Where : nn::Module {
  nn::Parameter weight{ones({1})};
  Tensor operator()(const Tensor& x) const {
    return full({x.size(0)}, weight.device().index(), {.device = x.device()});
  }
  BRAID_FIELDS(weight)
};

}  // namespace

TEST_CASE(
    "1.4, 2.1, 2.2, 11.6: several devices: the module is not moved, and has to be on the first",
    "[parallel][data_parallel][errors]") {
  if (device_count() < 2) return;
  DataParallel model(home(Net{}), {device(1), device(0)});
  CHECK(model.module.fc1.weight.device() == device(0));
  CHECK_THROWS_TEXT(
      DeviceError,
      here("module must have its parameters and buffers on device cpu:1 (device_ids[0]) but found "
           "one of them on device: cpu:0 (parameter 'fc1.weight')"),
      model(ones({4, 4})));
  to(model, device(1));
  const Tensor y = model(ones({4, 4}));
  CHECK(y.device() == device(1));
  Net net;
  to(net, device(1));
  DataParallel other(std::move(net), {0, 1});
  CHECK_THROWS_TEXT(DeviceError,
                    here("device cpu:0 (device_ids[0]) but found one of them on device: cpu:1 "
                         "(parameter 'fc1.weight')"),
                    other(ones({4, 4})));
  CHECK_THROWS_TEXT(DeviceError, "(parameter 'fc1.weight')",
                    data_parallel(other.module, ones({4, 4}), {0, 1}));
  CHECK_THROWS_TEXT(DeviceError, "(parameter 'fc1.weight')",
                    data_parallel(other.module, ones({4, 4}), {0}));
  to(other.module, device(0));
  other.module.seen = nn::Buffer(zeros({1}, {.device = device(1)}));
  CHECK_THROWS_TEXT(
      DeviceError,
      here("device cpu:0 (device_ids[0]) but found one of them on device: cpu:1 (buffer 'seen')"),
      other(ones({4, 4})));
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
          CHECK(data_parallel(model.module, x, {device(first), device(1 - first)}).device() ==
                device(first));
        } else {
          const std::string text = str("found one of them on device: ", device(1 - first),
                                       " (parameter 'fc", wrong + 1, ".weight')");
          CHECK_THROWS_TEXT(DeviceError, text, model(x));
          CHECK_THROWS_TEXT(DeviceError, text,
                            data_parallel(model.module, x, {device(first), device(1 - first)}));
        }
      }
    }
  }
}

TEST_CASE("1.6: a device twice is an error, and so is one that does not exist",
          "[parallel][data_parallel][errors]") {
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

TEST_CASE("11.7, T06: a replica that throws through DataParallel; the next forward works",
          "[parallel][data_parallel][errors]") {
  struct Throws : nn::Module {
    nn::Parameter weight{ones({1})};
    Tensor operator()(const Tensor& x, double limit) const {
      if (weight.device().index() >= limit) return x + ones({7, 7}, {.device = x.device()});
      return x * weight;
    }
    BRAID_FIELDS(weight)
  };
  for (int n = 2; n <= device_count(); ++n) {
    const DataParallel model(home(Throws{}), group(n));
    const Tensor x = ones({2 * n, 3});
    for (int first = n - 1; first >= 0; --first) {
      try {
        model(x, static_cast<double>(first));
        FAIL("nothing was thrown");
      } catch (const ReplicaError& e) {
        CHECK(matches(e.what(), str("Caught ShapeError in replica ", first, " on device ",
                                    device(first), ": ")));
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

}  // namespace braid::test::on_device
