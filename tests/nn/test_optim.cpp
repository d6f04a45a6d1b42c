// Optimizers compared with plain loops in double.
#include "optim_cases.hpp"

namespace braid::test::on_device {

namespace {

std::vector<Tensor> tensors(const std::vector<Tracked>& tracked) {
  std::vector<Tensor> list;
  for (const Tracked& t : tracked) list.push_back(t.tensor);
  return list;
}

/// Takes `steps` steps with random gradients from `low` to 1.
void check_steps(const Case& c, std::vector<Tracked> tracked, int steps, double tolerance,
                 double low = -1) {
  const auto optimizer = c.make(tensors(tracked));
  std::uint64_t seed = 10;
  for (int step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    for (std::size_t i = 0; i < tracked.size(); ++i) {
      Tracked& t = tracked[i];
      // In a long run, the second parameter gets its first gradient in step 7, and the third has a
      // gradient only in every third step.
      if (steps > 10 && ((i == 1 && step < 7) || (i == 2 && step % 3 != 0))) continue;
      t.take(c, random_tensor(test::sizes_of(t.tensor.shape()), t.tensor.dtype(), t.tensor.device(),
                              seed++, low, 1));
    }
    optimizer->step();
  }
  for (std::size_t i = 0; i < tracked.size(); ++i) {
    INFO(c.name << ", parameter " << i << ": " << tracked[i].tensor.dtype() << " on "
                << tracked[i].tensor.device());
    CHECK(tracked[i].close(tolerance));
    CHECK(optimizer->steps(i) == tracked[i].step);
  }
}

}  // namespace

TEST_CASE("optimizers: 60 steps agree with plain loops in double, in every type, on every device",
          "[nn][optim]") {
  for (const Case& c : cases()) {
    for (const Device device : test::test_devices())
      for (const DType dtype : {DType::float64, DType::float32}) {
        std::vector<Tracked> tracked;
        for (const Shape& shape : {Shape{2, 5}, Shape{}, Shape{17}, Shape{0}, Shape{130, 33}})
          tracked.emplace_back(leaf(shape, tracked.size() + 1, dtype, device));
        check_steps(c, tracked, static_cast<int>(cut(60, 12)),
                    dtype == DType::float64 ? 1e-12 : 2e-5);
      }
    // 16-bit parameters are rounded once per step
    check_steps(c, {Tracked(leaf({40}, 3, DType::float16))}, 3, 4e-3, 0.25);
    check_steps(c, {Tracked(leaf({40}, 3, DType::bfloat16))}, 3, 3e-2, 0.25);
    std::vector<Tracked> mixed;  // one optimizer for several devices and dtypes
    for (const DType dtype : {DType::float32, DType::float64})
      for (const Device device : {here(), there(), here()})
        mixed.emplace_back(leaf({9}, mixed.size(), dtype, device));
    check_steps(c, mixed, 5, 1e-5);
  }
}

TEST_CASE("optimizers: parameters and gradients of any layout", "[nn][optim]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Tensor whole = random_tensor({8, 3}, DType::float64, {}, 5);
    std::vector<Tracked> tracked{
        Tracked(random_tensor({4, 6}, DType::float64).t().requires_grad_()),
        Tracked(whole.slice(0, 1, 8, 2).detach().requires_grad_()),
        Tracked(leaf({4, 6}, 2, DType::float64))};
    for (const std::size_t i : {0u, 1u}) REQUIRE_FALSE(tracked[i].tensor.is_contiguous());
    const Numbers untouched = whole.slice(0, 0, 8, 2).to_vector<double>();
    const auto optimizer = c.make(tensors(tracked));
    const Tensor& transposed = tracked[0].tensor;
    const std::uint64_t version = transposed.version();
    std::uint64_t seed = 10;
    for (int step = 1; step <= 3; ++step) {
      for (Tracked& t : tracked)
        t.take(c,
               random_tensor({t.tensor.size(1), t.tensor.size(0)}, DType::float64, {}, seed++).t());
      optimizer->step();
    }
    for (const Tracked& t : tracked) CHECK(t.close(1e-12));
    CHECK(!transposed.is_contiguous());
    CHECK(transposed.version() > version);
    CHECK(whole.slice(0, 0, 8, 2).to_vector<double>() == untouched);
  }
}

TEST_CASE("optimizers: none stays none, and is skipped, decay and momentum too", "[nn][optim]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Tensor used = leaf({3}, 1), unused = leaf({3}, 2);
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
    const auto before = set_warning_handler([](std::string_view) {});
    optimizer->step();  // no parameter has a gradient
    set_warning_handler(before);
    CHECK(optimizer->steps(0) == 4);
  }
}

TEST_CASE("optimizers: follow a model that is moved, state too", "[nn][optim]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    nn::Linear layer(3, 2, {.device = here(), .dtype = DType::float64});
    const auto optimizer = c.make(parameters(layer));
    Tracked w(layer.weight), b(layer.bias);
    std::uint64_t seed = 1;
    for (int step = 1; step <= 6; ++step) {
      if (step == 3) to(layer, there());
      if (step == 5) to(layer, here());
      for (Tracked* t : {&w, &b})
        t->take(c, random_tensor(test::sizes_of(t->tensor.shape()), DType::float64,
                                 layer.weight.device(), seed++, -1, 1));
      optimizer->step();
      const auto check_devices = [&](const auto& made) {
        for (const auto& [key, t] : state_dict(made))
          CHECK(t.device() == (key == "steps" ? Device() : layer.weight.device()));
      };
      if (const auto* sgd = dynamic_cast<optim::SGD*>(optimizer.get())) check_devices(*sgd);
      if (const auto* adamw = dynamic_cast<optim::AdamW*>(optimizer.get())) check_devices(*adamw);
    }
    CHECK(w.close(1e-12));
    CHECK(b.close(1e-12));
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
