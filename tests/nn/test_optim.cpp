// Optimizers: against plain loops in double, state, and what a step must not do.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <braid/braid.hpp>
#include <braid/core/body.hpp>

#include "support/errors.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {

namespace {

using Numbers = std::vector<double>;

/// One parameter's update in double, as the formulas say; `m`, `v` and `s` are its state, `step` counts from 1.
using Reference = std::function<void(Numbers& p, const Numbers& g, Numbers& m, Numbers& v, Numbers& s, int step)>;

Reference sgd_reference(const optim::SgdOptions& o) {
  return [o](Numbers& p, const Numbers& g, Numbers& m, Numbers&, Numbers&, int step) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      double d = (o.maximize ? -g[i] : g[i]) + o.weight_decay * p[i];
      if (o.momentum != 0) {
        m[i] = step == 1 ? d : o.momentum * m[i] + (1 - o.dampening) * d;
        d = o.nesterov ? d + o.momentum * m[i] : m[i];
      }
      p[i] -= o.lr * d;
    }
  };
}

/// Adam, or AdamW.
template <class Options>
Reference adam_reference(const Options& o, bool coupled) {
  return [o, coupled](Numbers& p, const Numbers& g, Numbers& m, Numbers& v, Numbers& s, int step) {
    const double bias1 = 1 - std::pow(o.beta1, step), bias2 = 1 - std::pow(o.beta2, step);
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double d = (o.maximize ? -g[i] : g[i]) + (coupled ? o.weight_decay * p[i] : 0);
      if (!coupled) p[i] *= 1 - o.lr * o.weight_decay;
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * d;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * d * d;
      s[i] = std::max(s[i], v[i]);
      p[i] -= o.lr / bias1 * m[i] / (std::sqrt(o.amsgrad ? s[i] : v[i]) / std::sqrt(bias2) + o.eps);
    }
  };
}

Reference rmsprop_reference(const optim::RMSpropOptions& o) {
  return [o](Numbers& p, const Numbers& g, Numbers& m, Numbers& v, Numbers& s, int) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double d = (o.maximize ? -g[i] : g[i]) + o.weight_decay * p[i];
      v[i] = o.alpha * v[i] + (1 - o.alpha) * d * d;
      s[i] = o.alpha * s[i] + (1 - o.alpha) * d;
      m[i] = o.momentum * m[i] + d / (std::sqrt(o.centered ? v[i] - s[i] * s[i] : v[i]) + o.eps);
      p[i] -= o.lr * m[i];
    }
  };
}

Reference adagrad_reference(const optim::AdagradOptions& o) {
  return [o](Numbers& p, const Numbers& g, Numbers&, Numbers& v, Numbers&, int step) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double d = (o.maximize ? -g[i] : g[i]) + o.weight_decay * p[i];
      v[i] += d * d + (step == 1 ? o.initial_accumulator_value : 0);
      p[i] -= o.lr / (1 + (step - 1) * o.lr_decay) * d / (std::sqrt(v[i]) + o.eps);
    }
  };
}

Reference lion_reference(const optim::LionOptions& o) {
  return [o](Numbers& p, const Numbers& g, Numbers& m, Numbers&, Numbers&, int) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double d = o.maximize ? -g[i] : g[i], way = o.beta1 * m[i] + (1 - o.beta1) * d;
      p[i] = p[i] * (1 - o.lr * o.weight_decay) - o.lr * (way > 0 ? 1 : way < 0 ? -1 : 0);
      m[i] = o.beta2 * m[i] + (1 - o.beta2) * d;
    }
  };
}

struct Case {
  std::string name;
  std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)> make;
  Reference reference;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto sgd = [&](const std::string& name, const optim::SgdOptions& o) {
    list.push_back({"SGD " + name, [o](std::vector<Tensor> p) { return std::make_unique<optim::SGD>(std::move(p), o); }, sgd_reference(o)});
  };
  const auto adamw = [&](const std::string& name, const optim::AdamWOptions& o) {
    list.push_back({"AdamW " + name, [o](std::vector<Tensor> p) { return std::make_unique<optim::AdamW>(std::move(p), o); }, adam_reference(o, false)});
  };
  const auto adam = [&](const std::string& name, const optim::AdamOptions& o) {
    list.push_back({"Adam " + name, [o](std::vector<Tensor> p) { return std::make_unique<optim::Adam>(std::move(p), o); }, adam_reference(o, true)});
  };
  const auto rmsprop = [&](const std::string& name, const optim::RMSpropOptions& o) {
    list.push_back({"RMSprop " + name, [o](std::vector<Tensor> p) { return std::make_unique<optim::RMSprop>(std::move(p), o); }, rmsprop_reference(o)});
  };
  const auto adagrad = [&](const std::string& name, const optim::AdagradOptions& o) {
    list.push_back({"Adagrad " + name, [o](std::vector<Tensor> p) { return std::make_unique<optim::Adagrad>(std::move(p), o); }, adagrad_reference(o)});
  };
  const auto lion = [&](const std::string& name, const optim::LionOptions& o) {
    list.push_back({"Lion " + name, [o](std::vector<Tensor> p) { return std::make_unique<optim::Lion>(std::move(p), o); }, lion_reference(o)});
  };
  sgd("plain", {.lr = 0.1});
  sgd("weight decay", {.lr = 0.1, .weight_decay = 0.05});
  sgd("momentum", {.lr = 0.05, .momentum = 0.9});
  sgd("momentum, weight decay, dampening", {.lr = 0.05, .momentum = 0.8, .weight_decay = 0.01, .dampening = 0.3});
  sgd("nesterov, weight decay", {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  sgd("maximize", {.lr = 0.05, .momentum = 0.5, .weight_decay = 0.1, .maximize = true});
  sgd("lr 0", {.lr = 0});
  adamw("default", {});
  adamw("other betas", {.lr = 0.02, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.2});
  adamw("beta 0", {.lr = 0.02, .beta1 = 0, .beta2 = 0, .weight_decay = 0});
  adamw("amsgrad, maximize", {.lr = 0.02, .beta1 = 0.5, .beta2 = 0.6, .weight_decay = 0.1, .amsgrad = true, .maximize = true});
  adam("default", {});
  adam("weight decay", {.lr = 0.02, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-4, .weight_decay = 0.1});
  adam("amsgrad, maximize", {.lr = 0.02, .beta1 = 0.5, .beta2 = 0.6, .eps = 1e-4, .weight_decay = 0.1, .amsgrad = true, .maximize = true});
  rmsprop("default", {});
  rmsprop("momentum, weight decay", {.lr = 0.005, .alpha = 0.9, .eps = 1e-3, .weight_decay = 0.05, .momentum = 0.7});
  rmsprop("centered, maximize", {.lr = 0.005, .alpha = 0.7, .eps = 1e-2, .centered = true, .maximize = true});
  rmsprop("centered, momentum", {.lr = 0.005, .alpha = 0.7, .eps = 1e-2, .momentum = 0.5, .centered = true});
  adagrad("default", {});
  adagrad("decays", {.lr = 0.05, .lr_decay = 0.1, .weight_decay = 0.05, .initial_accumulator_value = 0.2, .maximize = true});
  lion("default", {});
  lion("weight decay, maximize", {.lr = 0.003, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1, .maximize = true});
  return list;
}

struct Tracked {  // a parameter, and what it must be
  Tensor tensor;
  Numbers p, m, v, s;
  int step = 0;
  explicit Tracked(Tensor t) : tensor(std::move(t)), p(tensor.to_vector<double>()), m(p.size()), v(p.size()), s(p.size()) {}
};

bool close(const Tracked& t, double tolerance) {
  const Numbers got = t.tensor.to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(got[i] - t.p[i]) <= tolerance * (1 + std::abs(t.p[i])))) return false;
  }
  return true;
}

Tensor leaf(const Shape& shape, DType dtype, Device device, std::uint64_t seed) {
  return random_tensor(test::sizes_of(shape), dtype, device, seed, -1, 1).requires_grad_();
}

}  // namespace

TEST_CASE("optimizers: 60 steps agree with plain loops in double, in every type, on every device", "[nn][optim]") {
  const int steps = static_cast<int>(cut(60, 12));
  for (const Case& c : cases()) {
    for (const Device device : test::test_devices()) {
      for (const DType dtype : {DType::float64, DType::float32}) {
        INFO(c.name << " " << device << " " << dtype);
        std::vector<Tracked> tracked;
        std::uint64_t seed = 1;
        for (const Shape& shape : {Shape{2, 5}, Shape{}, Shape{17}, Shape{0}, Shape{130, 33}}) tracked.emplace_back(leaf(shape, dtype, device, seed++));
        std::vector<Tensor> parameters;
        for (const Tracked& t : tracked) parameters.push_back(t.tensor);
        const auto optimizer = c.make(parameters);
        for (int step = 0; step < steps; ++step) {
          optimizer->zero_grad();
          for (std::size_t i = 0; i < tracked.size(); ++i) {
            // The second parameter's first gradient comes later, and the third has one only now and then.
            if ((i == 1 && step < 7) || (i == 2 && step % 3 != 0)) continue;
            Tracked& t = tracked[i];
            const Tensor grad = random_tensor(test::sizes_of(t.tensor.shape()), dtype, device, seed++, -1, 1);
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
        const Tensor grad = random_tensor({40}, dtype, {}, static_cast<std::uint64_t>(step) + 10, 0.25, 1);
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
        Tensor grad = random_tensor({t->tensor.size(1), t->tensor.size(0)}, DType::float64, {}, seed++).t();
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
      for (const Device device : {here(), there(), here()}) tracked.emplace_back(leaf({9}, dtype, device, tracked.size()));
    }
    std::vector<Tensor> parameters;
    for (const Tracked& t : tracked) parameters.push_back(t.tensor);
    const auto optimizer = c.make(parameters);
    for (int step = 1; step <= 5; ++step) {
      for (Tracked& t : tracked) {
        const Tensor grad = random_tensor({9}, t.tensor.dtype(), t.tensor.device(), static_cast<std::uint64_t>(step), -1, 1);
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
    const Tensor used = leaf({3}, DType::float32, here(), 1), unused = leaf({3}, DType::float32, here(), 2);
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

TEST_CASE("optimizers: a step bumps versions, so that a stale backward is noticed", "[nn][optim]") {
  nn::Linear layer(2, 2, {.device = here()});
  optim::SGD sgd(parameters(layer), {.lr = 0.1});
  const Tensor x = ones({1, 2}, {.requires_grad = true});
  const Tensor y = layer(x).sum();
  y.backward({}, true);
  const std::uint64_t version = layer.weight.version();
  sgd.step();
  CHECK(layer.weight.version() > version);
  CHECK_THROWS_AS(y.backward(), AutogradError);
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
        const Tensor grad = random_tensor(test::sizes_of(t->tensor.shape()), DType::float64, layer.weight.device(), seed++, -1, 1);
        t->tensor.set_grad(grad);
        c.reference(t->p, grad.to_vector<double>(), t->m, t->v, t->s, step);
      }
      optimizer->step();
      const auto on_device = [&](const auto& made) {
        for (const auto& [key, t] : state_dict(made)) CHECK(t.device() == (key == "steps" ? Device() : layer.weight.device()));
      };
      if (const auto* sgd = dynamic_cast<optim::SGD*>(optimizer.get())) on_device(*sgd);
      if (const auto* adamw = dynamic_cast<optim::AdamW*>(optimizer.get())) on_device(*adamw);
    }
    CHECK(close(w, 1e-12));
    CHECK(close(b, 1e-12));
    CHECK(w.tensor.id() == layer.weight.id());
  }
}

TEST_CASE("optimizers: a step that cannot be taken changes nothing", "[nn][optim][errors]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Tensor a = leaf({300}, DType::float32, here(), 1), b = leaf({300}, DType::float32, here(), 2);
    const auto optimizer = c.make({a, b});
    const Numbers before = a.to_vector<double>();
    const auto fails = [&](auto check) {
      check();
      CHECK(a.to_vector<double>() == before);
      CHECK(optimizer->steps(0) == 0);
    };
    a.set_grad(ones({300}));
    // set_grad refuses these; a gradient can go stale all the same, by what happens to the parameter.
    b.set_grad(ones({300}));
    b.impl()->grad = ones({3}).impl();
    fails([&] { CHECK_THROWS_TEXT(ShapeError, ": expected the gradient of parameter 1 to have its shape [300], got [3]", optimizer->step()); });
    b.impl()->grad = ones({300}, {.dtype = DType::float64}).impl();
    fails([&] { CHECK_THROWS_TEXT(DTypeError, ": expected the gradient of parameter 1 to be float32, got float64", optimizer->step()); });
    b.impl()->grad = ones({300}, {.device = there()}).impl();
    fails([&] { CHECK_THROWS_TEXT(DeviceError, here(": expected the gradient of parameter 1 on cpu:0, got cpu:1"), optimizer->step()); });
    const Tensor wide = zeros({1}).expand({300});  // given its place by a move of the model
    const Tensor own = b.detach();
    b.set_grad(ones({300}));
    detail::replace_body(b, wide);
    fails([&] {
      CHECK_THROWS_TEXT(LayoutError, ": expected parameters whose elements each have their own memory, got an expanded one at position 1", optimizer->step());
    });
    detail::replace_body(b, own);
    // Every allocation of a step, each failing in turn: a strided gradient needs a copy, and the state is made.
    b.set_grad(ones({600}).slice(0, 0, 600, 2));
    const std::uint64_t start = memory_stats(here()).allocations;
    {
      const Tensor pa = a.detach().clone().requires_grad_(), pb = b.detach().clone().requires_grad_();
      pa.set_grad(a.grad());
      pb.set_grad(b.grad());
      const std::uint64_t made = memory_stats(here()).allocations;
      c.make({pa, pb})->step();
      const std::uint64_t needed = memory_stats(here()).allocations - made;
      CHECK(made > start);
      const std::uint64_t of_step = needed - (on_cpu() ? 1 : 0);  // the probe made its counts of steps, on the CPU
      REQUIRE(of_step >= 1);                                      // the dense copy
      for (std::uint64_t k = 1; k <= of_step; ++k) {
        fail_allocation(here(), k);
        try {
          const NoGrad guard;
          optimizer->step();
          CHECK(k > 1);  // the state of an earlier failure exists already: then fewer are needed
          fail_allocation(here(), 0);
          break;
        } catch (const OutOfMemoryError&) {
          fail_allocation(here(), 0);
          CHECK(a.to_vector<double>() == before);
          CHECK(optimizer->steps(0) == 0);
        }
      }
    }
    if (optimizer->steps(0) == 0) optimizer->step();
    CHECK(optimizer->steps(0) == 1);
    CHECK(optimizer->steps(1) == 1);
  }
}

TEST_CASE("optimizers: the second half of a step does nothing without the first", "[nn][optim][errors]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Tensor a = leaf({300}, DType::float32, here(), 1), b = leaf({300}, DType::float32, here(), 2);
    const auto optimizer = c.make({a, b});
    a.set_grad(ones({600}).slice(0, 0, 600, 2));  // a dense copy of it lives as long as the step
    b.set_grad(ones({300}));
    optimizer->prepare_step();
    optimizer->finish_step();
    const Numbers after = a.to_vector<double>();
    optimizer->finish_step();
    CHECK(a.to_vector<double>() == after);
    CHECK(optimizer->steps(0) == 1);
    b.impl()->grad = ones({3}).impl();  // stale: parameter 0 has been prepared when it is seen
    CHECK_THROWS_AS(optimizer->prepare_step(), ShapeError);
    optimizer->finish_step();
    CHECK(a.to_vector<double>() == after);
    CHECK(optimizer->steps(0) == 1);
  }
}

TEST_CASE("optimizers: allocate nothing once the state exists", "[nn][optim]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Tensor a = leaf({5, 2}, DType::float32, here(), 1), b = leaf({5}, DType::float32, here(), 2);
    const auto optimizer = c.make({a, b});
    a.set_grad(ones({5, 2}));
    b.set_grad(ones({5}));
    optimizer->step();
    const std::uint64_t before = memory_stats(here()).allocations;
    for (int i = 0; i < 10; ++i) optimizer->step();
    CHECK(memory_stats(here()).allocations == before);
  }
}

TEST_CASE("optimizers: the state is a tree, saved and restored", "[nn][optim][state]") {
  const auto run = [](optim::Optimizer& optimizer, const std::vector<Tensor>& parameters, int from, int to) {
    for (int step = from; step < to; ++step) {
      optimizer.zero_grad();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (i == 1 && step < 4) continue;
        parameters[i].set_grad(random_tensor(test::sizes_of(parameters[i].shape()), DType::float32, {}, static_cast<std::uint64_t>(step) * 7 + i));
      }
      optimizer.step();
    }
  };
  const auto check = [&](const auto& options, auto make, const std::vector<std::string>& expected) {
    const std::vector<Tensor> through{leaf({6}, DType::float32, here(), 1), leaf({2, 2}, DType::float32, here(), 2)};
    std::vector<Tensor> resumed;
    auto first = make(through, options);
    run(*first, through, 0, 3);  // the second parameter has no state yet
    for (const Tensor& t : through) resumed.push_back(t.detach().clone().requires_grad_());
    StateDict saved;
    std::vector<std::string> keys;
    for (const auto& [key, t] : state_dict(*first)) {
      keys.push_back(key);
      saved.set(key, t.clone());
    }
    CHECK(keys == expected);
    CHECK(saved.at("steps").to_vector<int>() == std::vector<int>{3, 0});
    StateDict before;
    for (const auto& [key, t] : saved) before.set(key, t.clone());
    auto second = make(resumed, options);
    CHECK(load_state_dict(*second, saved).loaded == expected.size());
    run(*first, through, 3, 9);
    run(*second, resumed, 3, 9);
    for (std::size_t i = 0; i < through.size(); ++i) CHECK_SAME_BITS(through[i], resumed[i]);
    for (const auto& [key, t] : saved) CHECK_SAME_BITS(t, before.at(key));  // what was loaded is a copy
    // Loading again over existing state goes back to it.
    load_state_dict(*second, saved);
    CHECK(second->steps(0) == 3);
    CHECK(state_dict(*second).size() == expected.size());
    CHECK_SAME_BITS(state_dict(*second).at(expected[0]), saved.at(expected[0]));
  };
  const auto sgd = [](const std::vector<Tensor>& p, const optim::SgdOptions& o) { return std::make_unique<optim::SGD>(p, o); };
  const auto adamw = [](const std::vector<Tensor>& p, const optim::AdamWOptions& o) { return std::make_unique<optim::AdamW>(p, o); };
  check(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5}, sgd, {"momentum.0", "steps"});
  check(optim::SgdOptions{.lr = 0.1}, sgd, {"steps"});
  check(optim::AdamWOptions{.lr = 0.1}, adamw, {"exp_avg.0", "exp_avg_sq.0", "steps"});
}

TEST_CASE("optimizers: a state that does not fit is refused whole", "[nn][optim][state][errors]") {
  const Tensor a = leaf({6}, DType::float32, here(), 1), b = leaf({2}, DType::float32, here(), 2);
  optim::AdamW adamw({a, b});
  a.set_grad(ones({6}));
  adamw.step();
  StateDict dict;
  for (const auto& [key, t] : state_dict(adamw)) dict.set(key, t.clone());
  const Tensor before = dict.at("exp_avg.0");
  dict.set("exp_avg.0", ones({5}));
  dict.set("exp_avg_sq.0", ones({6}, {.dtype = DType::float64}));
  dict.set("momentum.0", ones({6}));
  dict.set("steps", tensor(std::vector<std::int64_t>{4, 2}));
  CHECK_THROWS_TEXT(ArgumentError,
                    "load_state_dict: expected the state of AdamW over 2 parameters, got 5 keys that do not fit\n"
                    "  exp_avg.0: expected shape [6], got [5]\n"
                    "  exp_avg.1: is missing, and parameter 1 was updated 2 times\n"
                    "  exp_avg_sq.0: expected float32, got float64\n"
                    "  exp_avg_sq.1: is missing, and parameter 1 was updated 2 times\n"
                    "  momentum.0: was not expected",
                    load_state_dict(adamw, dict));
  CHECK(adamw.steps(0) == 1);
  CHECK_SAME_BITS(state_dict(adamw).at("exp_avg.0"), before);
  CHECK_THROWS_TEXT(ArgumentError, "1 key that does not fit\n  steps: is missing", load_state_dict(adamw, StateDict()));
  CHECK_THROWS_TEXT(ArgumentError, "steps: expected counts >= 0, got -1",
                    load_state_dict(adamw, StateDict{{"steps", tensor(std::vector<std::int64_t>{0, -1})}}));
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
