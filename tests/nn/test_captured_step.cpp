// training::captured_step: replays compute the bits that plain steps compute.
#include <set>
#include <thread>

#include "captured_net.hpp"
#include "support/warnings.hpp"

namespace braid::test::on_device {

namespace {

using Numbers = std::vector<double>;

/// The bits of all weights, all states of the optimizer, and what the steps returned.
struct Outcome {
  std::vector<Numbers> numbers;
  std::vector<double> losses;
  RandomState random;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// What a test does with a step, plain or captured.
struct Steps {
  Net net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::vector<double> losses;
  std::function<Tensor(const Batch&)> step;
  std::function<std::int64_t()> replays;

  /// Gradients are clipped to `clip`; if it is below 0, to -clip while the optimizer reads them.
  template <class Make> Steps(bool capture, Make&& make, double clip) {
    optimizer = make(parameters(net));
    const auto body = [this, clip](const Batch& batch) {
      optimizer->zero_grad();
      const Tensor loss =
          nn::cross_entropy(net(batch.x) + 0.1 * randn({1, 3}, {.device = here()}), batch.y);
      loss.backward();
      if (clip > 0) (void)optim::clip_grad_norm_(parameters(net), clip);
      if (clip < 0) optimizer->step(optim::clip_grad_norm(parameters(net), -clip).factor);
      else optimizer->step();
      return loss.detach();
    };
    if (capture) {
      auto made = std::make_shared<training::CapturedStep<std::decay_t<decltype(body)>>>(
          training::captured_step(body));
      step = [made](const Batch& batch) { return (*made)(batch); };
      replays = [made] { return made->replays(); };
    } else {
      step = body;
      replays = [] { return std::int64_t{0}; };
    }
  }
  void run(std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) losses.push_back(step(batch_of(i)).item<double>());
  }
  Outcome outcome() const {
    Outcome o{{}, losses, random_state()};
    for (const auto& [name, t] : state_dict(net)) o.numbers.push_back(t.to_vector<double>());
    for (const auto& [name, t] : state_dict(*optimizer)) o.numbers.push_back(t.to_vector<double>());
    for (const Tensor& p : parameters(net))
      if (const Tensor g = p.grad(); g.defined()) o.numbers.push_back(g.to_vector<double>());
    return o;
  }
};

using Make = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;

/// Runs `program` with a plain step and with a captured one, and compares all bits.
template <class F>
void check_same(const char* name, const Make& make, double clip, std::int64_t replays,
                F&& program) {
  INFO(name);
  Outcome outcomes[2];
  for (const bool capture : {false, true}) {
    manual_seed(5);
    Steps steps(capture, make, clip);
    program(steps);
    outcomes[capture ? 1 : 0] = steps.outcome();
    if (capture) CHECK(steps.replays() == (on_cpu() ? 0 : replays));
  }
  CHECK(outcomes[0] == outcomes[1]);
}

template <class O, class Options> Make maker(const Options& options) {
  return
      [options](std::vector<Tensor> list) { return std::make_unique<O>(std::move(list), options); };
}

std::vector<std::pair<const char*, Make>> makers() {
  using namespace optim;
  return {{"AdamW", maker<AdamW>(AdamWOptions{.lr = 0.01, .weight_decay = 0.1})},
          {"Adam amsgrad", maker<Adam>(AdamOptions{.lr = 0.01, .amsgrad = true})},
          {"SGD", maker<SGD>(SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true})},
          {"RMSprop", maker<RMSprop>(RMSpropOptions{.lr = 0.01})},
          {"Adagrad", maker<Adagrad>(AdagradOptions{.lr = 0.1, .lr_decay = 0.1})},
          {"Lion", maker<Lion>(LionOptions{.lr = 0.01})}};
}

}  // namespace

TEST_CASE("captured step: a schedule, dropout, noise and clipping", "[nn][captured_step]") {
  for (const auto& [name, make] : makers())
    for (const double clip : {0.5, -0.5})
      check_same(name, make, clip, 5, [](Steps& s) {
        optim::CosineSchedule schedule(*s.optimizer, {.steps = 9});
        for (std::int64_t i = 0; i < 8; ++i) {
          s.run(i, i + 1);
          schedule.step();
        }
      });
}

TEST_CASE("captured step: loaded weights and states, and steps outside", "[nn][captured_step]") {
  // an update that depends on the step count, one on whether it is the first, one on neither
  for (const auto& named : makers()) {
    if (named.first != std::string("AdamW") && named.first != std::string("SGD") &&
        named.first != std::string("Lion"))
      continue;
    // not a structured binding: clang 14 cannot capture one
    const char* const name = named.first;
    const Make& make = named.second;
    StateDict weights, states;
    // loading replaces the state's tensors, so the step is recorded again
    check_same(name, make, 0, 6, [&](Steps& s) {
      s.run(0, 4);
      if (weights.empty()) {
        for (const auto& [path, t] : state_dict(s.net)) weights.set(path, t.clone());
        for (const auto& [path, t] : state_dict(*s.optimizer)) states.set(path, t.clone());
      }
      s.run(4, 6);
      load_state_dict(s.net, weights);
      load_state_dict(*s.optimizer, states);
      s.run(6, 8);
      manual_seed(9);  // the generator between two calls
      (void)randn({3});
      s.run(8, 9);
      s.optimizer->zero_grad();  // a gradient that is removed outside of the step
      s.run(9, 10);
      if (name == std::string("SGD") || name == std::string("AdamW")) {
        s.optimizer->set_momentum(0, 0.5);
      }
      s.run(10, 11);
    });
  }
}

TEST_CASE("captured step: gradients that add up over calls", "[nn][captured_step]") {
  const auto outcome = [](bool capture) {
    manual_seed(1);
    Net net;
    optim::SGD sgd(parameters(net), {.lr = 0.1, .momentum = 0.9});
    const auto body = [&](const Batch& batch) {
      nn::cross_entropy(net(batch.x), batch.y).backward();
    };
    auto step = training::captured_step(body);
    for (int i = 0; i < 12; ++i) {
      if (capture) step(batch_of(i));
      else body(batch_of(i));
      if (i % 6 == 5) sgd.step(), sgd.zero_grad();  // the next call finds no gradients
    }
    std::vector<Numbers> numbers;
    for (const Tensor& p : parameters(net)) numbers.push_back(p.to_vector<double>());
    return numbers;
  };
  CHECK(outcome(false) == outcome(true));
}

TEST_CASE("captured step: another batch runs without the graph", "[nn][captured_step]") {
  const Warnings warnings;
  check_same("shapes", makers()[0].second, 0, 4, [](Steps& s) {
    s.run(0, 5);
    s.losses.push_back(s.step(batch_of(5, 3)).item<double>());
    s.losses.push_back(s.step(batch_of(6, 2)).item<double>());
    s.run(7, 9);
  });
  CHECK(warnings.texts.size() == (on_cpu() ? 0u : 1u));
}

TEST_CASE("captured step: every random op draws what a plain step draws", "[nn][captured_step]") {
  const auto outcome = [](bool capture) {
    manual_seed(2);
    const nn::BatchNorm1d norm(4, {.device = here()});
    const Tensor scale = ones({4}, {.device = here(), .requires_grad = true});
    const auto body = [&](const Tensor& x) {
      const Tensor h = norm(x * scale);
      const Tensor q = h.reshape({2, 3, 2, 4});  // [batch, rows, heads, width]
      const Tensor attended = scaled_dot_product_attention(q, q, q, {}, 0.4);
      const Tensor kept = checkpoint([&](const Tensor& y) { return dropout(y, 0.5); }, h);
      const Tensor loss =
          sum(attended * attended) + sum(kept * dropout1d(h.unsqueeze(2)).squeeze(2));
      scale.set_grad({});
      loss.backward();
      return std::tuple(loss, scale.grad(), rand({5}), randn({3}), randint(0, 1000, {4}),
                        bernoulli(full({6}, 0.5)), randn({2}, {.device = here(), .seed = 7}));
    };
    auto step = training::captured_step(body);
    std::vector<Numbers> numbers;
    for (int i = 0; i < 7; ++i) {
      const Tensor x = randn({12, 4}, {.device = here(), .seed = static_cast<std::uint64_t>(i)});
      if (i == 5) manual_seed(3);
      const auto results = capture ? step(x) : body(x);
      std::apply(
          [&](const auto&... t) { (numbers.push_back(t.template to_vector<double>()), ...); },
          results);
    }
    numbers.push_back(norm.running_mean.to_vector<double>());
    numbers.push_back({static_cast<double>(random_state().stream)});
    if (capture) CHECK(step.replays() == (step.recorded() ? 4 : 0));
    return numbers;
  };
  CHECK(outcome(false) == outcome(true));
}

TEST_CASE("captured step: two threads draw different numbers", "[nn][captured_step]") {
  constexpr int kReplays = 200;
  const Device device = here();
  const auto draw = [&](const Tensor& x) { return x + rand({1}, {.device = device}); };
  const Tensor zero = zeros({1}, {.device = device});
  std::vector<Tensor> drawn[2];
  auto first = training::captured_step(draw), second = training::captured_step(draw);
  for (int i = 0; i < 3; ++i) (void)first(zero), (void)second(zero);
  const auto replay = [&](auto& step, std::vector<Tensor>& to) {
    const StreamGuard guard(make_stream(device));
    for (int i = 0; i < kReplays; ++i) to.push_back(step(zero));
    synchronize(device);
  };
  std::thread other([&] { replay(second, drawn[1]); });
  replay(first, drawn[0]);
  other.join();
  std::set<double> values;
  for (const auto& list : drawn)
    for (const Tensor& t : list) values.insert(t.item<double>());
  CHECK(values.size() > 2 * kReplays - 3);  // two streams may have one number of 2^24
}

TEST_CASE("captured step: a batch keeps its layout", "[nn][captured_step]") {
  auto step = training::captured_step(
      [](const Tensor& x) { return std::pair(x.is_contiguous() ? x : -x, x.transpose(0, 1)); });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = full({3, 2}, i + 1, {.device = here()}).transpose(0, 1);
    const auto [y, z] = step(x);
    CHECK(y.to_vector<double>() == std::vector<double>(6, -i - 1.0));
    CHECK(z.is_contiguous());
  }
  CHECK(step.recorded() == !on_cpu());
}

TEST_CASE("captured step: results are the caller's, and versions move", "[nn][captured_step]") {
  manual_seed(0);
  Net net;
  optim::SGD sgd(parameters(net), {.lr = 0.1});
  auto step = training::captured_step([&](const Batch& batch) {
    sgd.zero_grad();
    const Tensor y = net(batch.x), loss = nn::cross_entropy(y, batch.y);
    loss.backward();
    sgd.step();
    return std::pair(loss, y);
  });
  std::vector<Tensor> losses;
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t version = net.fc1.weight.version();
    const auto [loss, y] = step(batch_of(i));
    CHECK(!loss.requires_grad());
    CHECK(y.shape() == Shape({5, 3}));
    CHECK(net.fc1.weight.version() > version);
    losses.push_back(loss);
  }
  CHECK(step.recorded() == !on_cpu());
  CHECK(losses[3].item<double>() != losses[4].item<double>());
  // a graph that saved the weights before a replay notices it
  const Tensor stale = net(batch_of(7).x).sum();
  step(batch_of(8));
  CHECK_THROWS_AS(stale.backward(), AutogradError);
}

TEST_CASE("captured step: layers in another mode, and parameters that are frozen",
          "[nn][captured_step]") {
  check_same("modes", makers()[0].second, 0, 7, [](Steps& s) {
    s.run(0, 4);  // one replay
    { const EvalGuard evaluating(s.net); }
    s.run(4, 5);  // the second: the mode is as before
    eval(s.net.dropout);
    s.run(5, 8);  // a plain step, a recording, the third
    train(s.net);
    s.run(8, 11);  // the fourth
    requires_grad_(s.net.fc1, false);
    s.run(11, 14);  // the fifth
    s.net.fc1.weight.requires_grad_(true);
    s.run(14, 17);  // the sixth
    Net other;
    const EvalGuard unused(other);
    s.run(17, 20);  // a plain step, a recording, the seventh: the step may read any mode
  });
}

TEST_CASE("captured step: tensors of the program that the step reads", "[nn][captured_step]") {
  const auto outcome = [](bool capture) {
    Tensor scale = full({4}, 2.0, {.device = here()}), total = zeros({4}, {.device = here()});
    const auto body = [&](const Tensor& x) {
      total.add_(x * scale);
      return x * scale + total;
    };
    auto step = training::captured_step(body);
    std::vector<Numbers> numbers;
    for (int i = 0; i < 12; ++i) {
      const Tensor x = full({4}, i, {.device = here()});
      numbers.push_back((capture ? step(x) : body(x)).to_vector<double>());
      if (i == 4) scale.fill_(3.0);  // the same memory: replays read it
      if (i == 6) {
        scale = Tensor();
        scale = full({4}, 5.0, {.device = here()});
      }
    }
    if (capture) CHECK(step.replays() == (step.recorded() ? 7 : 0));
    return numbers;
  };
  CHECK(outcome(false) == outcome(true));
}

TEST_CASE("captured step: more parameters than one launch updates", "[nn][captured_step]") {
  const auto outcome = [](bool capture) {
    manual_seed(3);
    std::vector<Tensor> leaves;
    for (std::int64_t i = 0; i < 130; ++i)
      leaves.push_back(randn({1 + i % 5}, {.device = here()}).requires_grad_());
    optim::AdamW adam(leaves, {.lr = 0.01});
    const auto body = [&](const Tensor& x) {
      adam.zero_grad();
      const Tensor loss = square(cat(leaves) * x).sum();
      loss.backward();
      adam.step(optim::clip_grad_norm(leaves, 1.0).factor);
      return loss;
    };
    auto step = training::captured_step(body);
    std::vector<Numbers> numbers;
    for (int i = 0; i < 5; ++i) {
      const Tensor x = full({1}, 1 + i, {.device = here()});
      numbers.push_back((capture ? step(x) : body(x)).to_vector<double>());
    }
    for (const Tensor& leaf : leaves) numbers.push_back(leaf.detach().to_vector<double>());
    if (capture) CHECK(step.replays() == (step.recorded() ? 2 : 0));
    return numbers;
  };
  CHECK(outcome(false) == outcome(true));
}

TEST_CASE("captured step: autocast in the step, and around it", "[nn][captured_step]") {
  const auto outcome = [](bool capture) {
    manual_seed(6);
    Net net;
    optim::AdamW adam(parameters(net), {.lr = 0.01});
    const auto body = [&](const Batch& batch) {
      adam.zero_grad();
      const Tensor loss = [&] {
        const Autocast guard(DType::bfloat16);
        return nn::cross_entropy(net(batch.x), batch.y);
      }();
      loss.backward();
      adam.step();
      return loss.detach();
    };
    auto step = training::captured_step(body);
    std::vector<Numbers> numbers;
    const auto run = [&](int i) {
      numbers.push_back((capture ? step(batch_of(i)) : body(batch_of(i))).to_vector<double>());
    };
    for (int i = 0; i < 5; ++i) run(i);
    {
      const NoGrad guard;  // the step computes gradients only outside
      const Tensor unused = net(batch_of(0).x);
    }
    const Autocast guard(DType::float16);
    for (int i = 5; i < 8; ++i) run(i);  // recorded again
    if (capture) CHECK(step.replays() == (step.recorded() ? 3 : 0));
    return numbers;
  };
  CHECK(outcome(false) == outcome(true));
}

TEST_CASE("captured step: a recording of spans", "[nn][captured_step]") {
  auto step = training::captured_step([](const Tensor& x) {
    const trace::Span span("inner", trace::Phase::compute, here());
    return x * 2;
  });
  const Device list[] = {here()};
  trace::Recording recording(list);
  for (int i = 0; i < 5; ++i)
    CHECK(step(full({2}, i, {.device = here()})).to_vector<double>() ==
          std::vector<double>(2, 2.0 * i));
  std::size_t spans = 0;
  for (const trace::Record& record : recording.records())
    spans += record.name == std::string("inner");
  CHECK(spans == (on_cpu() ? 5u : 3u));  // replays run no code of the host
}

}  // namespace braid::test::on_device
