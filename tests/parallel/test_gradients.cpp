// A loss of the joined output has the gradient of one device, whatever the number of devices.
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/softmax.hpp>
#include <braid/nn/activations.hpp>
#include <braid/nn/embedding.hpp>
#include <braid/nn/losses.hpp>
#include <braid/nn/sequential.hpp>
#include <braid/parallel/data_parallel.hpp>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"

namespace braid::test::on_device {

using parallel::DataParallel;

namespace {

/// 7.6: one parameter that nobody uses, one that only some replicas use.
struct Sometimes : nn::Module {
  nn::Parameter always{ones({1})}, some{ones({1})}, never{ones({1})};
  Tensor operator()(const Tensor& x) const {
    const Tensor y = x * always;
    return always.device().index() % 2 == 1 ? y * some : y;
  }
  BRAID_FIELDS(always, some, never)
};

void sgd(const std::vector<Tensor>& list, double lr) {
  const NoGrad guard;
  for (const Tensor& p : list)
    if (p.grad().defined()) p.add_(p.grad(), -lr);
}

}  // namespace

TEST_CASE(
    "11.2: weight gradients 2175 … 2295 and bias gradient 30, exactly, for every number of devices",
    "[parallel][gradients]") {
  const Tensor x = counting({30, 5});
  for (int n = 1; n <= device_count(); ++n) {
    INFO(n << " devices");
    const DataParallel model(home(nn::Linear(5, 2)), group(n));
    for (int repeat = 1; repeat <= 2; ++repeat) {  // and they accumulate
      model(x).sum().backward();
      std::vector<double> expected;
      for (int row = 0; row < 2; ++row)
        for (const double g : {2175.0, 2205.0, 2235.0, 2265.0, 2295.0})
          expected.push_back(repeat * g);
      CHECK(numbers(model.module.weight.grad()) == expected);
      CHECK(numbers(model.module.bias.grad()) == std::vector<double>(2, repeat * 30.0));
      CHECK(model.module.weight.grad().device() == device(0));
    }
  }
}

TEST_CASE("11.3, T18: the gradient penalty: weight gradient 0.25, none or 0 for the bias",
          "[parallel][gradients]") {
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(home(nn::Linear(4, 1)), group(n));
    const Tensor x = ones({2, 4}, {.requires_grad = true});
    const Tensor y = model(x), dx = grad(std::vector<Tensor>{y}, std::vector<Tensor>{x},
                                         std::vector<Tensor>{ones_like(y)}, true, true)[0];
    CHECK(equal(dx[0], model.module.weight[0].detach()));
    dx.mean().backward();
    CHECK(numbers(model.module.weight.grad()) == std::vector<double>(4, 0.25));
    // the bias is in no gradient of x
    CHECK((!model.module.bias.grad().defined() || numbers(model.module.bias.grad())[0] == 0.0));
  }
}

TEST_CASE("7.4: a penalty on the parameters' gradient, against one device",
          "[parallel][gradients]") {
  const auto penalised = [](const auto& model, const auto& module, const Tensor& x) {
    const std::vector<Tensor> ps = parameters(module);
    const Tensor loss = square(tanh(model(x))).sum();
    Tensor penalty;
    for (const Tensor& g : grad(std::vector<Tensor>{loss}, ps, {}, true, true))
      penalty = penalty.defined() ? penalty + (g * g).sum() : (g * g).sum();
    penalty.backward();
    std::vector<Tensor> result;
    for (const Tensor& p : ps) result.push_back(p.grad());
    zero_grad(module);
    return result;
  };
  nn::Linear plain = home(nn::Linear(3, 2));
  to(plain, DType::float64);
  const Tensor x = random_tensor({7, 3}, DType::float64);
  const std::vector<Tensor> expected = penalised(plain, plain, x);
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(clone(plain), group(n));
    const std::vector<Tensor> got = penalised(model, model.module, x);
    for (std::size_t k = 0; k < got.size(); ++k)
      CHECK_CLOSE(got[k], expected[k], (Tolerance{1e-10, 1e-10}));
  }
}

TEST_CASE("gradients and gradients of gradients through the whole of DataParallel",
          "[parallel][gradients]") {
  for (const int n : {2, 3}) {
    if (n > device_count()) continue;
    const auto f = [n](const Tensor& w, const Tensor& b, const Tensor& x) {
      struct Layer : nn::Module {
        Tensor w, b;
        Tensor operator()(const Tensor& in) const { return tanh(linear(in, w, b)); }
        BRAID_FIELDS(w, b)
      } layer;
      layer.w = w, layer.b = b;
      return parallel::data_parallel(layer, x, group(n));
    };
    CHECK_GRAD(f, random_tensor({2, 3}, DType::float64, {}, 1).requires_grad_(),
               random_tensor({2}, DType::float64, {}, 2).requires_grad_(),
               random_tensor({4, 3}, DType::float64, device(n - 1), 3).requires_grad_());
  }
}

TEST_CASE("7.1: any batch on any number of devices: the gradient of one device",
          "[parallel][gradients]") {
  auto plain = home(nn::Sequential{nn::Linear(5, 7), nn::ReLU(), nn::Linear(7, 3)});
  to(plain, DType::float64);
  for (const std::int64_t batch : {1, 2, 3, 7, 10, 17}) {
    const Tensor x =
        random_tensor({batch, 5}, DType::float64, {}, static_cast<std::uint64_t>(batch));
    std::vector<std::int64_t> classes;
    for (std::int64_t i = 0; i < batch; ++i) classes.push_back(i % 3);
    const Tensor labels = tensor(classes);
    zero_grad(plain);
    const Tensor loss = nn::cross_entropy(plain(x), labels);
    loss.backward();
    for (int n = 1; n <= device_count(); ++n) {
      const DataParallel model(clone(plain), group(n));
      const Tensor split_loss = nn::cross_entropy(model(x), labels);
      CHECK_CLOSE(split_loss, loss, tolerance(DType::float64));
      split_loss.backward();
      for (std::size_t k = 0; k < parameters(plain).size(); ++k)
        CHECK_CLOSE(parameters(model)[k].grad(), parameters(plain)[k].grad(),
                    tolerance(DType::float64));
    }
  }
}

TEST_CASE("7.6: a parameter that no replica used has no gradient; one that some used has",
          "[parallel][gradients]") {
  for (int n = 2; n <= device_count(); ++n) {
    const DataParallel model(home(Sometimes{}), group(n));
    model(ones({2 * n, 1})).sum().backward();
    CHECK(numbers(model.module.always.grad())[0] == 2.0 * n);
    CHECK(numbers(model.module.some.grad())[0] == 2.0 * (n / 2));
    CHECK_FALSE(model.module.never.grad().defined());
  }
}

TEST_CASE("7.1: the same bits in every run", "[parallel][gradients]") {
  const int n = device_count();
  const Tensor x = random_tensor({64, 20});
  DataParallel model(home(nn::Sequential{nn::Linear(20, 600), nn::ReLU(), nn::Linear(600, 600),
                                         nn::Tanh(), nn::Linear(600, 1)}),
                     group(n));
  std::vector<Tensor> first;
  for (int run = 0; run < 5; ++run) {
    zero_grad(model);
    model(x).sum().backward();
    const std::vector<Tensor> ps = parameters(model);
    if (first.empty())
      for (const Tensor& p : ps) first.push_back(p.grad());
    for (std::size_t k = 0; k < ps.size(); ++k) CHECK_SAME_BITS(ps[k].grad(), first[k]);
  }
}

TEST_CASE("C9: training over devices goes where one device goes", "[parallel][gradients]") {
  auto start = home(nn::Sequential{nn::Linear(6, 16), nn::Tanh(), nn::Linear(16, 2)});
  to(start, DType::float64);
  for (int n = 1; n <= device_count(); ++n) {
    auto plain = clone(start);
    DataParallel model(clone(start), group(n));
    for (int step = 0; step < 20; ++step) {
      const Tensor x = random_tensor({11, 6}, DType::float64, {}, static_cast<std::uint64_t>(step)),
                   y = random_tensor({11, 2}, DType::float64, {},
                                     static_cast<std::uint64_t>(step + 100));
      zero_grad(plain);
      zero_grad(model);
      nn::mse_loss(plain(x), y).backward();
      nn::mse_loss(model(x), y).backward();
      sgd(parameters(plain), 0.1);
      sgd(parameters(model), 0.1);
    }
    for (std::size_t k = 0; k < parameters(plain).size(); ++k)
      CHECK_CLOSE(parameters(model)[k], parameters(plain)[k], (Tolerance{1e-10, 1e-10}));
  }
}

TEST_CASE("T13: an embedding's gradient", "[parallel][gradients]") {
  nn::Embedding plain = home(nn::Embedding(10, 4));
  to(plain, DType::float64);
  const Tensor words = randint(0, 10, {20, 5}, {.seed = 3});
  square(plain(words)).sum().backward();
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(clone(plain), group(n));
    square(model(words)).sum().backward();
    CHECK_CLOSE(model.module.weight.grad(), plain.weight.grad(), tolerance(DType::float64));
  }
}

TEST_CASE("a frozen parameter gets no gradient, and the others their own",
          "[parallel][gradients]") {
  for (int n = 1; n <= device_count(); ++n) {
    DataParallel model(home(Net{}), group(n));
    requires_grad_(model.module.fc1, false);
    model(ones({9, 4})).sum().backward();
    CHECK_FALSE(model.module.fc1.weight.grad().defined());
    CHECK(numbers(model.module.fc2.bias.grad()) == std::vector<double>(3, 9.0));
  }
}

TEST_CASE(
    "a weight changed between forward and backward is noticed, in every replica's copy of replica "
    "0",
    "[parallel][gradients][errors]") {
  const DataParallel model(home(nn::Sequential{nn::Linear(4, 4), nn::Linear(4, 1)}));
  const Tensor y = model(ones({device_count() * 2, 4})).sum();
  {
    const NoGrad guard;
    std::get<1>(model.module.layers).weight.mul_(2.0);
  }
  if (device_count() == 1) {
    CHECK_THROWS_TEXT(AutogradError, "changed in place", y.backward());
    return;
  }
  CHECK_THROWS_TEXT(ReplicaError,
                    here("Caught AutogradError in replica 0 on device cpu:0: *changed in place"),
                    y.backward());
}

}  // namespace braid::test::on_device
