// The forward of DataParallel.
#include <braid/parallel/data_parallel.hpp>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

template <> inline constexpr bool braid::tree::plain<std::vector<braid::Tensor>*> = true;

namespace braid::test::on_device {

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
  Tensor operator()(const Tensor& x) const {
    return full({x.size(0)}, weight.device().index(), {.device = x.device()});
  }
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
  std::tuple<Tensor, std::vector<Tensor>> operator()(const Tensor& a, const Tensor& b,
                                                     double factor, const Arguments& more) const {
    const Tensor y =
        fc(a + b * factor) + std::get<1>(more.pairs.at(0)).sum(Shape{1}, true) * more.factor;
    return {y, {more.c ? y + *more.c : y, y * 2.0}};
  }
  BRAID_FIELDS(fc)
};

}  // namespace

TEST_CASE("1.1, C8, T17: devices as devices, as indices, as names; the default is all",
          "[parallel][data_parallel]") {
  const int n = device_count();
  const Tensor x = ones({n, 1});
  std::vector<double> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  CHECK(numbers(DataParallel(home(Where{}))(x)) == all);
  CHECK(numbers(DataParallel(home(Where{}), devices())(x)) == all);
  if (n < 2) return;
  const Tensor two = ones({2, 1});
  CHECK(numbers(DataParallel(home(Where{}), {0, 1})(two)) == std::vector<double>{0, 1});
  CHECK(numbers(DataParallel(home(Where{}), std::vector<int>{0, 1})(two)) ==
        std::vector<double>{0, 1});
  CHECK(numbers(DataParallel(home(Where{}), {here("cpu:0"), here("cpu:1")})(two)) ==
        std::vector<double>{0, 1});
  CHECK(DataParallel(home(Where{}), {0, 1}, device(1))(two).device() == device(1));
  CHECK(DataParallel(home(Where{}), {0, 1}, {.output_device = device(1)})(two).device() ==
        device(1));
  CHECK(numbers(
            DataParallel<nn::Linear>(home(nn::Linear(2, 2)), {0, 1}, std::nullopt, 0)(ones({2, 2})))
            .size() == 4);
}

TEST_CASE("1.2: an empty list calls the module directly, arguments untouched",
          "[parallel][data_parallel]") {
  std::vector<Tensor> calls;
  Probe probe;
  probe.calls = &calls;
  const Tensor x = ones({3}, {.device = device(device_count() - 1)});
  const DataParallel model(home(std::move(probe)), {});
  const Tensor y = model(x);
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].id() == x.id());
  CHECK(y.id() == x.id());
  CHECK(data_parallel(model.module, x, {}).id() == x.id());
}

TEST_CASE("1.3: one device: the module is moved there, and called directly with the inputs moved",
          "[parallel][data_parallel]") {
  for (int at = 0; at < device_count(); ++at) {
    std::vector<Tensor> calls;
    Probe probe;
    probe.calls = &calls;
    const DataParallel model(home(std::move(probe)), {at});
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
    const DataParallel scalar(home(Scalar{}), {at});
    // no gather: a scalar stays one
    CHECK(scalar(ones({3})).dim() == 0);
    CHECK(DataParallel(home(Scalar{}), {at}, device(0))(ones({3})).device() == device(0));  // C7
    CHECK(DataParallel(home(Scalar{}), {at}, device(0))(ones({3})).dim() == 0);
    CHECK(DataParallel(home(Count{}), {at})(ones({3})) == "3");  // any output
  }
}

TEST_CASE("1.3: of several devices only trees can be joined", "[parallel][data_parallel][errors]") {
  if (device_count() < 2) return;
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected a tree of tensors from every replica, got *string*with one "
                    "device any output is fine",
                    DataParallel(home(Count{}), {0, 1})(ones({3})));
}

TEST_CASE("T07, T14, T15: several and nested arguments and outputs give what the module gives",
          "[parallel][data_parallel]") {
  const Many plain = home(Many());
  for (int n = 1; n <= device_count(); ++n) {
    for (const std::int64_t batch : {1, 5, 16}) {
      const auto leaf = [&](std::int64_t width, std::uint64_t seed) {
        return random_tensor({batch, width}, DType::float32, device(device_count() - 1), seed)
            .requires_grad_();
      };
      const Tensor a = leaf(4, 1), b = leaf(4, 2), c = leaf(3, 3), d = leaf(2, 4);
      const auto at_home = [](const Tensor& t) { return t.to(device(0)); };
      const Arguments there{a, {{a, d}}, c, 0.5},
          here{at_home(a), {{at_home(a), at_home(d)}}, at_home(c), 0.5};
      const auto expected = plain(at_home(a), at_home(b), 3.0, here);
      const auto expected_grads = grad(
          std::get<1>(expected)[0].sum() + (std::get<0>(expected) * std::get<1>(expected)[1]).sum(),
          {a, b, c, d, plain.fc.weight, plain.fc.bias}, true);
      DataParallel model(clone(plain), group(n));
      for (const auto& output :
           {model(a, b, 3.0, there),
            data_parallel(model.module, std::tuple(a, b, 3.0, there), group(n))}) {
        CHECK_CLOSE(std::get<0>(output), std::get<0>(expected), tolerance(DType::float32));
        REQUIRE(std::get<1>(output).size() == 2);
        for (std::size_t i = 0; i < 2; ++i)
          CHECK_CLOSE(std::get<1>(output)[i], std::get<1>(expected)[i], tolerance(DType::float32));
        const auto grads = grad(
            std::get<1>(output)[0].sum() + (std::get<0>(output) * std::get<1>(output)[1]).sum(),
            {a, b, c, d, model.module.fc.weight, model.module.fc.bias}, true);
        for (std::size_t k = 0; k < grads.size(); ++k) {
          CHECK(grads[k].device() == (k < 4 ? a.device() : device(0)));
          CHECK_CLOSE(grads[k].to(device(0)), expected_grads[k].to(device(0)),
                      (Tolerance{1e-4, 1e-4}));
        }
      }
    }
  }
}

TEST_CASE("2.3, T12: inputs on any device; the output is on the output device",
          "[parallel][data_parallel]") {
  const nn::Linear plain = home(nn::Linear(4, 3));
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
    const Tensor y = DataParallel(home(Scaled{}), group(n))(x, s);
    CHECK(numbers(y) == numbers(x * 2.0));
    y.sum().backward();
    CHECK(s.grad().item<double>() == 36.0);
  }
}

TEST_CASE("3.8, T16: without inputs the module runs once, on the first device",
          "[parallel][data_parallel]") {
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(home(NoInput{}), group(n));
    CHECK(numbers(model()) == std::vector<double>(6, 2.0));
    CHECK(model().device() == device(0));
    CHECK(numbers(data_parallel(model.module, std::tuple<>(), group(n))) ==
          std::vector<double>(6, 2.0));
    model().sum().backward();
    CHECK(numbers(model.module.weight.grad()) == std::vector<double>(6, 2.0));
  }
}

TEST_CASE("3.1, 4.1: fewer rows than devices use the first devices only",
          "[parallel][data_parallel]") {
  for (int n = 1; n <= device_count(); ++n)
    for (const std::int64_t batch : {1, 2, 5, 9, 10, 30}) {
      std::vector<double> expected;
      const std::vector<std::int64_t> sizes =
          parallel::chunk_sizes(batch, static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < sizes.size(); ++i)
        expected.insert(expected.end(), static_cast<std::size_t>(sizes[i]), static_cast<double>(i));
      CHECK(numbers(DataParallel(home(Where{}), group(n))(ones({batch, 1}))) == expected);
    }
}

TEST_CASE("3.1: a batch without rows", "[parallel][data_parallel]") {
  for (int n = 1; n <= device_count(); ++n)
    CHECK(DataParallel(home(nn::Linear(4, 3)), group(n))(empty({0, 4})).shape() == Shape{0, 3});
}

TEST_CASE("3.9: dim 1 is split and joined", "[parallel][data_parallel]") {
  const nn::Linear plain = home(nn::Linear(4, 3));
  const Tensor x = random_tensor({6, 7, 4});
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(clone(plain), group(n), {.dim = 1});
    CHECK_CLOSE(model(x), plain(x), tolerance(DType::float32));
    CHECK_CLOSE(data_parallel(model.module, x, group(n), std::nullopt, 1), plain(x),
                tolerance(DType::float32));
  }
}

TEST_CASE("4.2, 4.13: what replica 0 writes in place stays; plain fields are lost",
          "[parallel][data_parallel]") {
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(home(Net{}), group(n));
    model(ones({9, 4}));
    model(ones({9, 4}));
    CHECK(numbers(model.module.seen)[0] ==
          2.0 * static_cast<double>(parallel::chunk_sizes(9, static_cast<std::size_t>(n))[0]));
    CHECK(model.module.calls == (n == 1 ? 2 : 0));
  }
}

TEST_CASE("4.10, T11: under NoGrad nothing is recorded, in the replicas too",
          "[parallel][data_parallel]") {
  struct Asks : nn::Module {
    nn::Parameter weight{ones({1})};
    Tensor operator()(const Tensor& x) const {
      return full({x.size(0)}, grad_enabled() ? 1 : 0, {.device = x.device()}) +
             (x.select(1, 0) * weight) * 0.0;
    }
    BRAID_FIELDS(weight)
  };
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(home(Asks{}), group(n));
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
    const Tensor y = DataParallel(home(Scalar{}), group(n))(ones({9, 1}));
    std::vector<double> expected;
    for (const std::int64_t rows : parallel::chunk_sizes(9, static_cast<std::size_t>(n)))
      expected.push_back(static_cast<double>(rows));
    CHECK(numbers(y) == expected);
    // also where one replica runs
    CHECK(DataParallel(home(Scalar{}), group(n))(ones({1, 1})).shape() == Shape{1});
  }
}

}  // namespace braid::test::on_device
