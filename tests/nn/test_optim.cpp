// Optimizers: against plain loops in double.
#include <cmath>
#include <string>
#include <vector>

#include <braid/braid.hpp>
#include <braid/core/body.hpp>

#include "optim_cases.hpp"
#include "support/errors.hpp"

namespace braid::test::on_device {

TEST_CASE("optimizers: 60 steps agree with plain loops in double, in every type, on every device",
          "[nn][optim]") {
  const int steps = static_cast<int>(cut(60, 12));
  for (const Case& c : cases()) {
    for (const Device device : test::test_devices()) {
      for (const DType dtype : {DType::float64, DType::float32}) {
        INFO(c.name << " " << device << " " << dtype);
        std::vector<Tracked> tracked;
        std::uint64_t seed = 1;
        for (const Shape& shape : {Shape{2, 5}, Shape{}, Shape{17}, Shape{0}, Shape{130, 33}})
          tracked.emplace_back(leaf(shape, dtype, device, seed++));
        std::vector<Tensor> parameters;
        for (const Tracked& t : tracked) parameters.push_back(t.tensor);
        const auto optimizer = c.make(parameters);
        for (int step = 0; step < steps; ++step) {
          optimizer->zero_grad();
          for (std::size_t i = 0; i < tracked.size(); ++i) {
            // The second parameter's first gradient comes later, and the third has one only now and
            // then.
            if ((i == 1 && step < 7) || (i == 2 && step % 3 != 0)) continue;
            Tracked& t = tracked[i];
            const Tensor grad =
                random_tensor(test::sizes_of(t.tensor.shape()), dtype, device, seed++, -1, 1);
            t.tensor.set_grad(grad);
            c.reference(t.p, grad.to_vector<double>(), t.m, t.v, t.s, ++t.step);
          }
          optimizer->step();
        }
        for (std::size_t i = 0; i < tracked.size(); ++i) {
          INFO("parameter " << i);
          CHECK(close(tracked[i], dtype == DType::float64 ? 1e-12 : 2e-5));
          CHECK(optimizer->steps(i) == tracked[i].step);
        }
      }
    }
  }
}

TEST_CASE("optimizers: float16 and bfloat16 are rounded once a step", "[nn][optim]") {
  for (const Case& c : cases()) {
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      INFO(c.name << " " << dtype);
      Tracked t(leaf({40}, dtype, here(), 3));
      const auto optimizer = c.make({t.tensor});
      for (int step = 1; step <= 3; ++step) {
        const Tensor grad =
            random_tensor({40}, dtype, {}, static_cast<std::uint64_t>(step) + 10, 0.25, 1);
        t.tensor.set_grad(grad);
        c.reference(t.p, grad.to_vector<double>(), t.m, t.v, t.s, step);
        optimizer->step();
      }
      CHECK(close(t, dtype == DType::float16 ? 4e-3 : 3e-2));
    }
  }
}

TEST_CASE("optimizers: parameters and gradients of any layout", "[nn][optim]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    Tracked transposed(random_tensor({4, 6}, DType::float64).t().requires_grad_());
    Tracked dense(leaf({4, 6}, DType::float64, here(), 2));
    const Tensor whole = random_tensor({8, 3}, DType::float64, {}, 5);
    Tracked sliced(whole.slice(0, 1, 8, 2).detach().requires_grad_());
    REQUIRE_FALSE(transposed.tensor.is_contiguous());
    REQUIRE_FALSE(sliced.tensor.is_contiguous());
    const Numbers untouched = whole.slice(0, 0, 8, 2).to_vector<double>();
    const auto optimizer = c.make({transposed.tensor, dense.tensor, sliced.tensor});
    const std::uint64_t version = transposed.tensor.version();
    for (int step = 1; step <= 3; ++step) {
      std::uint64_t seed = static_cast<std::uint64_t>(step) * 10;
      for (Tracked* t : {&transposed, &dense, &sliced}) {
        Tensor grad =
            random_tensor({t->tensor.size(1), t->tensor.size(0)}, DType::float64, {}, seed++).t();
        t->tensor.set_grad(grad);
        c.reference(t->p, grad.to_vector<double>(), t->m, t->v, t->s, step);
      }
      optimizer->step();
    }
    CHECK(close(transposed, 1e-12));
    CHECK(close(dense, 1e-12));
    CHECK(close(sliced, 1e-12));
    CHECK_FALSE(transposed.tensor.is_contiguous());
    CHECK(transposed.tensor.version() > version);
    CHECK(whole.slice(0, 0, 8, 2).to_vector<double>() == untouched);
  }
}

TEST_CASE("optimizers: one over several devices and dtypes", "[nn][optim]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    std::vector<Tracked> tracked;
    for (const DType dtype : {DType::float32, DType::float64}) {
      for (const Device device : {here(), there(), here()})
        tracked.emplace_back(leaf({9}, dtype, device, tracked.size()));
    }
    std::vector<Tensor> parameters;
    for (const Tracked& t : tracked) parameters.push_back(t.tensor);
    const auto optimizer = c.make(parameters);
    for (int step = 1; step <= 5; ++step) {
      for (Tracked& t : tracked) {
        const Tensor grad = random_tensor({9}, t.tensor.dtype(), t.tensor.device(),
                                          static_cast<std::uint64_t>(step), -1, 1);
        t.tensor.set_grad(grad);
        c.reference(t.p, grad.to_vector<double>(), t.m, t.v, t.s, step);
      }
      optimizer->step();
    }
    for (const Tracked& t : tracked) CHECK(close(t, 1e-5));
  }
}

TEST_CASE("optimizers: none stays none, and is skipped, decay and momentum too", "[nn][optim]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Tensor used = leaf({3}, DType::float32, here(), 1),
                 unused = leaf({3}, DType::float32, here(), 2);
    const Numbers before = unused.to_vector<double>();
    const auto optimizer = c.make({used, unused});
    used.sum().backward();
    unused.set_grad(ones({3}));
    optimizer->step();
    const Numbers once = unused.to_vector<double>();
    optimizer->zero_grad();
    CHECK_FALSE(unused.grad().defined());
    const std::uint64_t version = unused.version();
    for (int i = 0; i < 3; ++i) {
      used.set_grad(ones({3}));
      optimizer->step();
    }
    CHECK(unused.to_vector<double>() == once);
    CHECK(unused.version() == version);
    CHECK(optimizer->steps(1) == 1);
    optimizer->zero_grad();
    optimizer->step();  // nothing at all to do
    CHECK(optimizer->steps(0) == 4);
  }
}

TEST_CASE("optimizers: follow a model that is moved, state too", "[nn][optim]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    nn::Linear layer(3, 2, {.device = here(), .dtype = DType::float64});
    const auto optimizer = c.make(parameters(layer));
    Tracked w(layer.weight), b(layer.bias);
    for (int step = 1; step <= 6; ++step) {
      if (step == 3) to(layer, there());
      if (step == 5) to(layer, here());
      std::uint64_t seed = static_cast<std::uint64_t>(step);
      for (Tracked* t : {&w, &b}) {
        const Tensor grad = random_tensor(test::sizes_of(t->tensor.shape()), DType::float64,
                                          layer.weight.device(), seed++, -1, 1);
        t->tensor.set_grad(grad);
        c.reference(t->p, grad.to_vector<double>(), t->m, t->v, t->s, step);
      }
      optimizer->step();
      const auto on_device = [&](const auto& made) {
        for (const auto& [key, t] : state_dict(made))
          CHECK(t.device() == (key == "steps" ? Device() : layer.weight.device()));
      };
      if (const auto* sgd = dynamic_cast<optim::SGD*>(optimizer.get())) on_device(*sgd);
      if (const auto* adamw = dynamic_cast<optim::AdamW*>(optimizer.get())) on_device(*adamw);
    }
    CHECK(close(w, 1e-12));
    CHECK(close(b, 1e-12));
    CHECK(w.tensor.id() == layer.weight.id());
  }
}

TEST_CASE("optimizers: train a linear model to the weights that made the data", "[nn][optim]") {
  manual_seed(0);
  nn::Linear linear(3, 1, {.device = here()});
  optim::SGD sgd(parameters(linear), {.lr = 0.1});
  const Tensor x = randn({64, 3}), y = matmul(x, tensor({{1.0}, {-2.0}, {0.5}}));
  for (int i = 0; i < 200; ++i) {
    sgd.zero_grad();
    nn::mse_loss(linear(x), y).backward();
    sgd.step();
  }
  CHECK(str(linear.weight.detach().to(Device("cpu"))) == "tensor([[ 1.0000, -2.0000,  0.5000]])");
}

}  // namespace braid::test::on_device
