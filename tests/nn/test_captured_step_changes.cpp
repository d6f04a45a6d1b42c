// training::captured_step: what changes between its calls. A replay does what a plain call would
// do, or the call is a plain one.
#include <map>
#include <optional>
#include <string>

#include <braid/core/hooks.hpp>
#include <braid/kernels/cuda.hpp>

#include "captured_net.hpp"
#include "support/warnings.hpp"

namespace braid::test::on_device {

namespace {

using Numbers = std::vector<double>;

Tensor filled(double value) { return full({4}, value, {.device = here()}); }

/// What one program computes, with plain or with captured steps.
struct Log {
  bool capture;
  std::vector<Numbers> numbers = {};
  std::int64_t replays = 0;

  void add(const Tensor& t) { numbers.push_back(t.to_vector<double>()); }
  /// Returns a function that calls a step, and notes what it returns.
  template <class F> auto calls(const F& body) {
    auto step = std::make_shared<training::CapturedStep<F>>(training::captured_step(body));
    return [this, body, step](const auto& batch) mutable {
      if (!capture) return add(body(batch));
      const std::int64_t before = step->replays();
      add((*step)(batch));
      replays += step->replays() - before;
    };
  }
};

/// Runs a program with plain steps and with captured ones, and compares all bits.
template <class F> void check_same(const char* name, std::int64_t replays, F&& program) {
  INFO(name);
  const Warnings warnings;
  Log logs[2] = {{false}, {true}};
  for (Log& log : logs) {
    manual_seed(5);
    program(log);
  }
  CHECK(logs[0].numbers == logs[1].numbers);
  CHECK(logs[1].replays == (on_cpu() ? 0 : replays));
}

/// Calls a step with one batch until it is replayed once, with another batch twice, and with the
/// first one again, which is the second replay.
template <class B, class F>
void check_batches(const char* name, const B& batch, const B& other, const F& body) {
  check_same(name, 2, [&](Log& log) {
    auto step = log.calls(body);
    for (int i = 0; i < 4; ++i) step(batch);
    for (int i = 0; i < 2; ++i) step(other);
    step(batch);
  });
}

struct Scaled {
  Tensor x;
  double factor = 1;
  BRAID_FIELDS(x, factor)
};

/// A module of a program: no layer of the library is called.
struct Switch : nn::Module {
  Tensor factor = filled(3);
  Tensor operator()(const Tensor& x) const { return training ? x * factor : x + factor; }
  BRAID_FIELDS(factor)
};

}  // namespace

TEST_CASE("captured step: a batch of another structure", "[nn][captured_step]") {
  const Tensor a = filled(1), b = filled(2), c = filled(3);
  using Lists = std::vector<std::vector<Tensor>>;
  check_batches("lists", Lists{{a, b}, {c}}, Lists{{a}, {b, c}}, [](const Lists& lists) {
    Tensor sum = zeros({4});
    for (std::size_t i = 0; i < lists.size(); ++i)
      for (const Tensor& t : lists[i]) sum = sum + t * (1.0 + static_cast<double>(i));
    return sum;
  });
  using Map = std::map<std::string, Tensor>;
  check_batches("keys", Map{{"a", a}}, Map{{"b", a}},
                [](const Map& map) { return map.contains("a") ? map.at("a") : -map.at("b"); });
  using Options = std::vector<std::optional<Tensor>>;
  check_batches("optionals", Options{a, std::nullopt}, Options{std::nullopt, a},
                [](const Options& list) { return list[0] ? *list[0] * 2 : *list[1] * 3; });
  using Pair = std::pair<Tensor, Tensor>;
  const auto tied = [](const Pair& pair) {
    return pair.first.is_same(pair.second) ? pair.first * 5 : pair.first - pair.second;
  };
  check_batches("tied, then not", Pair{a, a}, Pair{b, c}, tied);
  check_batches("not tied, then tied", Pair{b, c}, Pair{a, a}, tied);
  check_batches("undefined", Pair{a, b}, Pair{a, Tensor()}, [](const Pair& pair) {
    return pair.second.defined() ? pair.first + pair.second : pair.first;
  });
}

TEST_CASE("captured step: the numbers and texts of a batch", "[nn][captured_step]") {
  const Tensor x = filled(2);
  check_batches("a number", Scaled{x, 3}, Scaled{x, 4},
                [](const Scaled& batch) { return batch.x * batch.factor; });
  check_batches("the sign of zero", Scaled{x, 0.0}, Scaled{x, -0.0},
                [](const Scaled& batch) { return batch.x / batch.factor; });
  using Text = std::tuple<Tensor, std::string, std::vector<int>>;
  const auto body = [](const Text& t) {
    const auto& [y, text, numbers] = t;
    return y * static_cast<double>(text.size()) + static_cast<double>(numbers.back());
  };
  check_batches("a text", Text{x, "abc", {1}}, Text{x, "ab", {1}}, body);
  check_batches("a list", Text{x, "abc", {1, 2}}, Text{x, "abc", {1, 3}}, body);
  using Parts = std::map<std::string, std::pair<Tensor, std::optional<bool>>>;
  check_batches("an optional in a map", Parts{{"a", {x, true}}}, Parts{{"a", {x, {}}}},
                [](const Parts& parts) {
                  const auto& [y, on] = parts.at("a");
                  return on ? y * 2 : y;
                });
}

TEST_CASE("captured step: settings that change between calls", "[nn][captured_step]") {
  const auto precision = float32_precision();
  const auto engine = cuda::gemm_engine();
  struct Row {
    const char* name;
    std::function<void()> change, back;
    std::int64_t replays = 3;  // one before the change, one after it, one after it is taken back
  };
  const Tensor factor = filled(1).requires_grad_();
  const nn::Linear layer(4, 4, {.device = here()});
  HookHandle hook;
  std::optional<DefaultDeviceGuard> device;
  std::optional<GradMode> mode;
  const Row rows[] = {
      {"precision", [] { set_float32_precision(Float32Precision::tf32x3); },
       [&] { set_float32_precision(precision); }},
      {"engine", [] { cuda::set_gemm_engine(cuda::GemmEngine::braid); },
       [&] { cuda::set_gemm_engine(engine); }},
      {"default device", [&] { device.emplace(there() == here() ? Device() : there()); },
       [&] { device.reset(); }},
      {"gradient mode", [&] { mode.emplace(false); }, [&] { mode.reset(); }},
      {"hook of a tensor",
       [&] { hook = factor.register_hook([](const Tensor& g) { return g * 2; }); },
       [&] { hook.remove(); }},
      {"later hook of a tensor",
       [&] { hook = factor.register_post_accumulate_grad_hook([](const Tensor&) {}); },
       [&] { hook.remove(); }},
      {"nothing", [] {}, [] {}, 7},
  };
  for (const Row& row : rows)
    check_same(row.name, row.replays, [&](Log& log) {
      auto step = log.calls([&](const Tensor& x) {
        factor.set_grad({});
        const Tensor loss = (layer(x) * factor).sum();
        if (grad_enabled()) loss.backward();
        return grad_enabled() ? factor.grad() : loss.detach();
      });
      const auto call = [&](int times) {
        for (int i = 0; i < times; ++i) step(filled(i));
      };
      call(4);
      row.change();
      call(3);
      row.back();
      call(3);
    });
}

TEST_CASE("captured step: hooks of layers, registered between calls", "[nn][captured_step]") {
  check_same("forward hooks", 4, [](Log& log) {
    nn::Linear layer(4, 4, {.device = here()});
    auto step = log.calls([&](const Tensor& x) { return layer(x).detach(); });
    std::int64_t called = 0;
    const auto call = [&](int times) {
      for (int i = 0; i < times; ++i) step(filled(i));
      log.numbers.push_back({static_cast<double>(called)});
    };
    call(4);
    const auto handle = nn::register_forward_hook(layer, [&](const nn::LayerCall&) { ++called; });
    call(1);
    handle.remove();
    call(4);
  });
}

TEST_CASE("captured step: modes that the step, or a module of the program, reads or sets",
          "[nn][captured_step]") {
  check_same("a module that reads its mode", 4, [](Log& log) {
    Switch module;
    auto step = log.calls([&](const Tensor& x) { return module(x); });
    const auto call = [&](int times) {
      for (int i = 0; i < times; ++i) step(filled(i));
    };
    call(4);
    eval(module);
    call(3);
    { const EvalGuard same(module); }
    train(module);
    call(3);
    {
      const EvalGuard guard(module);
      Switch other;  // its flag is another one, and is as it was when it ends
      const EvalGuard of_other(other);
    }
    call(1);
  });
  check_same("a guard in the step", 6, [](Log& log) {
    nn::Dropout dropout(0.5);
    auto step = log.calls([&](const Tensor& x) {
      const Tensor noisy = dropout(x);
      const EvalGuard guard(dropout);
      return noisy + dropout(x);
    });
    for (int i = 0; i < 9; ++i) step(filled(i));
  });
  check_same("a guard that comes first", 6, [](Log& log) {
    nn::Dropout dropout(0.5);
    auto step = log.calls([&](const Tensor& x) {
      const Tensor clean = [&] {
        const EvalGuard guard(dropout);
        return dropout(x);
      }();
      return clean + dropout(x);
    });
    for (int i = 0; i < 9; ++i) step(filled(i));
  });
  // validation leaves the model in the other mode: a plain step and a recording, each time
  check_same("train in the step", 2, [](Log& log) {
    nn::Dropout dropout(0.5);
    auto step = log.calls([&](const Tensor& x) {
      train(dropout);
      return dropout(x);
    });
    for (int i = 0; i < 4; ++i) step(filled(i));
    eval(dropout);
    for (int i = 0; i < 3; ++i) step(filled(i));
    log.numbers.push_back({dropout.training ? 1.0 : 0.0});
  });
}

TEST_CASE("captured step: tensors that the step makes, and gradients that it retains",
          "[nn][captured_step]") {
  check_same("a leaf", 6, [](Log& log) {
    auto step = log.calls([](const Tensor& x) {
      const Tensor leaf = x.clone().requires_grad_();
      square(leaf).sum().backward();
      return leaf.grad();
    });
    for (int i = 0; i < 9; ++i) step(filled(i));
  });
  check_same("retain_grad", 6, [](Log& log) {
    const Tensor weight = filled(2).requires_grad_();
    auto step = log.calls([&](const Tensor& x) {
      weight.set_grad({});
      const Tensor y = x * weight;
      y.retain_grad();
      square(y).sum().backward();
      return y.grad() + weight.grad();
    });
    for (int i = 0; i < 9; ++i) step(filled(i));
  });
}

TEST_CASE("captured step: a leaf that each call unfreezes and freezes", "[nn][captured_step]") {
  check_same("requires_grad_", 6, [](Log& log) {
    const Tensor weight = filled(2);
    auto step = log.calls([&](const Tensor& x) {
      weight.requires_grad_();
      weight.set_grad({});
      square(x * weight).sum().backward();
      weight.requires_grad_(false);
      return weight.grad() * 1;
    });
    for (int i = 0; i < 9; ++i) step(filled(i));
  });
}

TEST_CASE("captured step: tensors that the program replaces", "[nn][captured_step]") {
  check_same("a leaf", 3, [](Log& log) {
    Tensor scale = filled(2).requires_grad_();
    auto step = log.calls([&](const Tensor& x) {
      scale.set_grad({});
      (x * scale).sum().backward();
      return (x * scale).detach();
    });
    for (int i = 0; i < 5; ++i) step(filled(i));
    scale = filled(7).requires_grad_();
    for (int i = 0; i < 3; ++i) step(filled(i));
  });
  check_same("the whole of a part", 3, [](Log& log) {
    Tensor whole = filled(2);
    auto step = log.calls([&](const Tensor& x) {
      const Tensor part =
          make_tensor_on(Storage::slice(whole.storage(), 8, 8), {2}, {1}, 0, DType::float32);
      part.add_(1);
      return x.narrow(0, 0, 2) * part;
    });
    for (int i = 0; i < 5; ++i) step(filled(i));
    log.add(whole);
    whole = filled(7);
    for (int i = 0; i < 3; ++i) step(filled(i));
  });
}

TEST_CASE("captured step: sequences of their own lengths", "[nn][captured_step]") {
  check_same("a GRU", 2, [](Log& log) {
    const nn::GRU gru(4, 2, {.device = here()});
    const Tensor lengths = tensor({1, 3}).to(here());
    auto step = log.calls([&](const Tensor& x) {
      zero_grad(gru);
      const Tensor sum = square(gru(x, {}, lengths).output).sum();
      sum.backward();
      return sum;
    });
    for (int i = 0; i < 5; ++i) step(full({3, 2, 4}, 0.1 * i, {.device = here()}));
    for (const Tensor& p : parameters(gru)) log.add(p.grad());
  });
}

TEST_CASE("captured step: another optimizer, while a state_dict of the first is alive",
          "[nn][captured_step]") {
  check_same("optimizers", 4, [](Log& log) {
    const nn::Linear net(4, 2, {.device = here()});
    auto adam = std::make_unique<optim::AdamW>(parameters(net), optim::AdamWOptions{.lr = 0.01});
    auto step = log.calls([&](const Tensor& x) {
      adam->zero_grad();
      const Tensor loss = square(net(x.unsqueeze(0))).mean();
      loss.backward();
      adam->step();
      return loss;
    });
    for (int i = 0; i < 5; ++i) step(filled(i));  // two replays
    const StateDict state = state_dict(*adam);    // holds the memory of the state
    adam = std::make_unique<optim::AdamW>(parameters(net),
                                          optim::AdamWOptions{.lr = 0.5, .weight_decay = 0.5});
    load_state_dict(*adam, state);
    for (int i = 0; i < 4; ++i) step(filled(i));  // a plain call, a recording, two replays
    log.add(net.weight.detach());
  });
}

TEST_CASE("captured step: two of them, of which one makes the gradients", "[nn][captured_step]") {
  // of 18 calls, three of each step are plain or recorded
  check_same("gradients, and what uses them", 12, [](Log& log) {
    const nn::Linear net(4, 2, {.device = here()});
    optim::SGD sgd(parameters(net), {.lr = 0.1});
    auto gradients = log.calls([&](const Tensor& x) {
      sgd.zero_grad();
      const Tensor loss = square(net(x.unsqueeze(0))).mean();
      loss.backward();
      return loss;
    });
    auto update = log.calls([&](const Tensor& x) {
      sgd.step();
      return x + net.bias.detach().sum();
    });
    for (int i = 0; i < 9; ++i) {
      gradients(filled(i));
      log.add(net.weight.grad());  // read on the host between them
      update(filled(i));
    }
  });
  check_same("one gradient of two leaves", 3, [](Log& log) {
    Tensor scale = filled(2).requires_grad_(), master = filled(3).requires_grad_();
    auto step = log.calls([&](const Tensor& x) {
      scale.set_grad({});
      (x * scale).sum().backward();
      master.set_grad(scale.grad());
      return (x * master).detach();
    });
    for (int i = 0; i < 6; ++i) step(filled(i));
    log.add(master.grad());
  });
}

TEST_CASE("captured step: a model in another dtype, while a state_dict of it is alive",
          "[nn][captured_step]") {
  check_same("dtypes", 2, [](Log& log) {
    nn::Linear net(4, 2, {.device = here()});
    auto step = log.calls([&](const Tensor& x) {
      zero_grad(net);
      const Tensor y = net(x.unsqueeze(0).to(net.weight.dtype()));
      y.sum().backward();
      return y.detach();
    });
    for (int i = 0; i < 4; ++i) step(filled(i));  // one replay
    const StateDict state = state_dict(net);
    to(net, DType::float64);
    for (int i = 0; i < 3; ++i) step(filled(i));  // a plain call, a recording, a replay
    log.add(net.weight.grad());
  });
}

TEST_CASE("captured step: results and versions are those of plain calls", "[nn][captured_step]") {
  check_same("versions", 3, [](Log& log) {
    const Tensor total = zeros({4});
    auto step = log.calls([&](const Tensor& x) {
      total.add_(x).mul_(2);
      return x + total;
    });
    for (int i = 0; i < 6; ++i) {
      step(filled(i));
      log.numbers.push_back({static_cast<double>(total.version())});
    }
  });
  auto step = training::captured_step([total = zeros({4})](const Tensor& x) {
    total.add_(x);
    return std::pair(total, total);
  });
  std::vector<Tensor> results;
  for (int i = 0; i < 5; ++i) {
    const auto [first, second] = step(filled(1));
    CHECK(first.is_same(second));
    results.push_back(first);
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    CHECK(results[i].to_vector<double>() == Numbers(4, static_cast<double>(i) + 1));
}

TEST_CASE("captured step: the third lost recording warns, and says why", "[nn][captured_step]") {
  if (on_cpu()) return;
  nn::Dropout dropout(0.0);
  Tensor scale = filled(1), leaf = filled(2).requires_grad_();
  const auto precision = float32_precision();
  const std::vector<std::pair<const char*, std::function<void(int)>>> rows = {
      {"a mode of a layer, or what requires a gradient",
       [&](int i) { i % 2 == 0 ? eval(dropout) : train(dropout); }},
      {"a tensor that the step uses", [&](int) { scale = filled(1); }},
      {"a gradient", [&](int) { leaf.set_grad(filled(1)); }},
      {"a mode of a layer, or what requires a gradient",
       [&](int i) { leaf.requires_grad_(i % 2 != 0); }},
      {"the precision of float32 products",
       [&](int i) { set_float32_precision(i % 2 == 0 ? Float32Precision::tf32 : precision); }},
  };
  for (const auto& row : rows) {
    INFO(row.first);
    leaf.requires_grad_().set_grad(filled(0));
    train(dropout);
    const Warnings warnings;
    auto step = training::captured_step([&](const Tensor& x) {
      const Tensor y = dropout(x) * scale * leaf;
      if (y.requires_grad()) y.sum().backward();
      return y;
    });
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < (i == 0 ? 3 : 2); ++k) (void)step(filled(k));
      CHECK(step.recorded());
      row.second(i);
    }
    REQUIRE(warnings.texts.size() == 1);
    CHECK(warnings.texts[0].ends_with(std::string("because of ") + row.first));
  }
  set_float32_precision(precision);
  // An optimizer is replaced, and its tensors live on in a state_dict.
  const nn::Linear net(4, 2, {.device = here()});
  using Adam = optim::AdamW;
  auto adam = std::make_unique<Adam>(parameters(net));
  const Warnings warnings;
  auto step = training::captured_step([&](const Tensor& x) {
    adam->zero_grad();
    net(x.unsqueeze(0)).sum().backward();
    adam->step();
  });
  std::vector<StateDict> kept;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < (i == 0 ? 3 : 2); ++k) step(filled(k));
    CHECK(step.recorded());
    kept.push_back(state_dict(*adam));
    adam = std::make_unique<Adam>(parameters(net));
    load_state_dict(*adam, kept.back());
    step(filled(3));
  }
  REQUIRE(warnings.texts.size() == 1);
  CHECK(warnings.texts[0].ends_with("because of an optimizer that is gone"));
}

}  // namespace braid::test::on_device
