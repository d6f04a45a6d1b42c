// training::captured_step: what it refuses, and that nothing has changed then.
#include <stdexcept>
#include <thread>

#include "captured_net.hpp"
#include "support/errors.hpp"

namespace braid::test::on_device {

namespace {

/// A training step, and what a program may use in it besides.
struct Parts {
  Net net;
  optim::AdamW adam{parameters(net), {.lr = 0.1}};
  optim::AdamW late{parameters(net)};  // without a state
  optim::Adadelta ops{parameters(net)};
  optim::CosineSchedule schedule{adam, {.steps = 10}};
  optim::Average average{net};
  optim::GradScaler scaler;
  Tensor host = ones({2}, {.device = "cpu"}), total = zeros({}, {.device = here()});
  std::shared_ptr<Stream> side = make_stream(here());
  std::unique_ptr<Event> event = make_event(here());
  training::CapturedStep<Tensor (*)(const Tensor&)> inner{[](const Tensor& x) { return x + 1; }};
  std::function<void(const Tensor& loss)> act;
  std::int64_t calls = 0;

  Parts() {
    for (int i = 0; i < 3; ++i) (void)inner(total);  // recorded
  }

  Tensor operator()(const Batch& batch) {
    adam.zero_grad();
    const Tensor loss = nn::cross_entropy(net(batch.x), batch.y);
    loss.backward();
    adam.step();
    if (++calls > 2 && act) act(loss);
    return loss;
  }
};

/// Everything that a recording which fails must leave as it was.
struct State {
  std::vector<std::vector<double>> numbers;
  std::vector<Tensor> gradients;
  RandomState random = random_state();
  explicit State(const Parts& parts) {
    const auto add = [&](const StateDict& dict) {
      for (const auto& [name, t] : dict) {
        numbers.push_back(t.to_vector<double>());
        numbers.push_back({static_cast<double>(t.version())});
      }
    };
    add(state_dict(parts.net)), add(state_dict(parts.adam)), add(state_dict(parts.late));
    add(state_dict(parts.schedule)), add(state_dict(parts.average)), add(state_dict(parts.scaler));
    numbers.push_back({parts.adam.lr(), static_cast<double>(parts.adam.steps(0))});
    for (const Tensor& p : parameters(parts.net)) gradients.push_back(p.grad());
  }
  friend bool operator==(const State& a, const State& b) {
    bool same = a.numbers == b.numbers && a.random == b.random;
    for (std::size_t i = 0; i < a.gradients.size(); ++i)
      same = same && a.gradients[i].is_same(b.gradients[i]);
    return same;
  }
};

}  // namespace

TEST_CASE("captured step: a recording that fails gives back no number of another thread",
          "[nn][captured_step][errors]") {
  if (on_cpu()) return;  // every call runs the step
  int calls = 0;
  Tensor theirs;
  auto step = training::captured_step([&](const Tensor& x) {
    const Tensor y = x * rand_like(x);
    std::thread([&] { theirs = rand({4}); }).join();
    if (++calls == 3) (void)y.sum().item<double>();
    return y;
  });
  const Tensor x = ones({4}, {.device = here()});
  (void)step(x), (void)step(x);
  CHECK_THROWS_TEXT(CaptureError, "item: expected a captured step", step(x));
  for (int i = 0; i < 3; ++i) CHECK_FALSE(equal(rand({4}), theirs));
}

TEST_CASE("captured step: a graph with random numbers is of use within its step alone",
          "[nn][captured_step][errors]") {
  if (on_cpu()) return;  // every call runs the step
  const Tensor w = ones({1, 4, 8}, {.device = here(), .requires_grad = true}), x = w.detach();
  for (const bool attention : {false, true}) {
    Tensor kept;
    auto step = training::captured_step([&](const Tensor& t) {
      kept = attention ? scaled_dot_product_attention(t * w, t, t, {}, 0.5).sum()
                       : dropout(t * w, 0.5, true).sum();
      kept.backward({}, true);
      return kept.detach();
    });
    for (int i = 0; i < 3; ++i) (void)step(x);  // no replay, which changes what attention saved
    REQUIRE(step.recorded());
    CHECK_THROWS_TEXT(CaptureError,
                      attention ? "attention: expected a backward within the captured step*"
                                : "dropout: expected a backward within the captured step*",
                      (void)grad(kept, {w}, true));
  }
}

TEST_CASE("captured step: what cannot be replayed is refused, and nothing has changed",
          "[nn][captured_step][errors]") {
  if (on_cpu()) return;  // every call runs the step
  struct Row {
    const char* text;
    std::function<void(Parts&, const Tensor& loss)> act;
  };
  const Row rows[] = {
      {"item: expected a captured step that reads no values on the host",
       [](Parts&, const Tensor& loss) { (void)loss.item<double>(); }},
      {"item: expected a captured step that reads no values on the host",
       [](Parts&, const Tensor& loss) { (void)masked_select(loss, loss > 0); }},
      {"item: expected a captured step that reads no values on the host",
       [](Parts& parts, const Tensor&) {
         (void)optim::clip_grad_norm_(parameters(parts.net), 1.0, 2.0, true);
       }},
      {"to_vector: expected a captured step that reads no values on the host",
       [](Parts& parts, const Tensor&) { (void)parts.host.to_vector<float>(); }},
      {"data: expected a captured step that reads no values on the host",
       [](Parts& parts, const Tensor&) { (void)parts.host.data<const float>(); }},
      {"copy: expected a captured step without copies between the host and ",
       [](Parts& parts, const Tensor&) {
         parts.net.fc1.bias.detach().narrow(0, 0, 2).copy_(parts.host);
       }},
      {"captured_step: expected a step on ",
       [](Parts&, const Tensor& loss) { (void)loss.to("cpu"); }},
      {"captured_step: expected a step on ",
       [](Parts&, const Tensor&) { (void)zeros({3}, {.device = "cpu"}); }},
      {"captured_step: expected a step on ",
       [](Parts&, const Tensor&) {
         (void)zeros({3}, {.device = there() == here() ? Device() : there()});
       }},
      {"synchronize: expected a captured step that does not wait",
       [](Parts&, const Tensor& loss) { synchronize(loss.device()); }},
      {"captured_step: expected a step that keeps the tensors from before it that it reads",
       [](Parts& parts, const Tensor& loss) { parts.total = parts.total + loss.detach(); }},
      {"set_lr: expected a call outside of a captured step",
       [](Parts& parts, const Tensor&) { parts.adam.set_lr(0.5); }},
      {"set_momentum: expected a call outside of a captured step",
       [](Parts& parts, const Tensor&) { parts.adam.set_momentum(0, 0.5); }},
      {"follow: expected a call outside of a captured step",
       [](Parts& parts, const Tensor&) { parts.adam.follow(parts.adam); }},
      {"schedule: expected step() between the calls of a captured step",
       [](Parts& parts, const Tensor&) { parts.schedule.step(); }},
      {"Average: update: expected a call outside of a captured step",
       [](Parts& parts, const Tensor&) { parts.average.update(); }},
      {"GradScaler: expected a captured step without a scale",
       [](Parts& parts, const Tensor& loss) { (void)parts.scaler.scale(loss); }},
      {"GradScaler: expected a captured step without a scale",
       [](Parts& parts, const Tensor&) { (void)parts.scaler.step(parts.adam); }},
      {"AdamW: expected an optimizer whose state exists before the step is captured",
       [](Parts& parts, const Tensor&) { parts.late.step(); }},
      {"Adadelta: expected a captured step whose optimizers have a kernel",
       [](Parts& parts, const Tensor&) { parts.ops.step(); }},
      {"captured_step: expected random ops that use the generator",
       [](Parts&, const Tensor& loss) {
         const RandomScope scope(5, {});
         (void)dropout(loss, 0.5);
       }},
      {"manual_seed: expected a call outside of a captured step",
       [](Parts&, const Tensor&) { manual_seed(initial_seed()); }},
      {"set_random_state: expected a call outside of a captured step",
       [](Parts&, const Tensor&) { set_random_state(random_state()); }},
      {"captured_step: expected a step on the stream on which it is called",
       [](Parts& parts, const Tensor& loss) {
         const StreamGuard guard(parts.side);
         (void)(loss + 1);
       }},
      {"captured_step: expected a step on the stream on which it is called",
       [](Parts& parts, const Tensor& loss) { record_stream(loss, *parts.side); }},
      {"wait_for: expected a captured step without events and other streams",
       [](Parts& parts, const Tensor&) { parts.side->wait_for(current_stream(here())); }},
      {"wait_for: expected a captured step without events and other streams",
       [](Parts& parts, const Tensor&) { current_stream(here()).wait_for(*parts.side); }},
      {"record: expected a captured step without events and other streams",
       [](Parts& parts, const Tensor&) { current_stream(here()).record(*parts.event); }},
      {"wait: expected a captured step without events and other streams",
       [](Parts& parts, const Tensor&) { current_stream(here()).wait(*parts.event); }},
      {"from_blob: expected a call outside of a captured step",
       [](Parts& parts, const Tensor&) {
         (void)from_blob(parts.total.id()->data(), {}, DType::float32, {}, here());
       }},
      {"register_hook: expected a call outside of a captured step",
       [](Parts& parts, const Tensor&) {
         parts.net.fc1.weight.register_hook([](const Tensor&) {});
       }},
      {"register_forward_hook: expected a call outside of a captured step",
       [](Parts& parts, const Tensor&) {
         (void)nn::register_forward_hook(parts.net.fc1, [](const nn::LayerCall&) {});
       }},
      {"captured_step: expected a step that leaves the settings around it as they are",
       [](Parts&, const Tensor&) { set_float32_precision(Float32Precision::tf32); }},
      {"captured_step: expected a step that leaves each layer in the mode",
       [](Parts& parts, const Tensor&) { eval(parts.net.dropout); }},
      {"captured_step: expected a call outside of other captured steps",
       [](Parts&, const Tensor& loss) {
         auto inner = training::captured_step([](const Tensor& x) { return x + 1; });
         (void)inner(loss.detach());
       }},
      {"unsqueeze_: expected a tensor that the captured step makes, got one from before",
       [](Parts& parts, const Tensor& loss) {
         (loss * 2).detach().unsqueeze_(0);
         parts.total.unsqueeze_(0);
       }},
      {"captured_step: expected a call outside of other captured steps",
       [](Parts& parts, const Tensor& loss) { (void)parts.inner(loss.detach()); }},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    manual_seed(4);
    Parts parts;
    parts.act = [&](const Tensor& loss) { row.act(parts, loss); };
    auto step = training::captured_step([&](const Batch& batch) { return parts(batch); });
    for (int i = 0; i < 2; ++i) (void)step(batch_of(i));
    const State before(parts);
    CHECK(thrown<CaptureError>(row.text, [&] { (void)step(batch_of(2)); }) == "");
    CHECK(State(parts) == before);
    set_float32_precision(Float32Precision::exact);
    parts.act = nullptr;  // the step is as it should be now, and is recorded
    for (int i = 2; i < 5; ++i) (void)step(batch_of(i));
    CHECK(step.replays() == 2);
    CHECK(parts.adam.steps(0) == 5);
  }
}

TEST_CASE("captured step: a step that changes its batch", "[nn][captured_step][errors]") {
  struct Row {
    const char* text;
    Tensor (*step)(const Tensor& x);
  };
  const Row rows[] = {
      {"captured_step: expected a step that does not change its batch, got one that changes it in "
       "place",
       [](const Tensor& x) { return x.mul_(2) + 1; }},
      {"captured_step: expected a step that computes no gradient of its batch, got one of it",
       [](const Tensor& x) {
         const Tensor loss = square(x.requires_grad_()).sum();
         loss.backward();
         return loss;
       }},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    auto step = training::captured_step(row.step);
    for (int i = 0; i < 2; ++i) (void)step(ones({3}, {.device = here()}));
    const Tensor x = ones({3}, {.device = here()});
    if (!on_cpu()) {
      CHECK(thrown<CaptureError>(row.text, [&] { (void)step(x); }) == "");
      CHECK(x.to_vector<double>() == std::vector<double>(3, 1));
      CHECK(!x.requires_grad());
    }
  }
  if (on_cpu()) return;
  // the copy of a batch of the host is the step's own
  auto moved = training::captured_step(rows[0].step, {.device = here()});
  for (int i = 0; i < 5; ++i)
    CHECK(moved(full({3}, i, {.device = "cpu"})).to_vector<double>() ==
          std::vector<double>(3, 2.0 * i + 1));
  CHECK(moved.replays() == (moved.recorded() ? 2 : 0));
}

TEST_CASE("captured step: an exception of the step goes on, and nothing has changed",
          "[nn][captured_step][errors]") {
  Parts parts;
  auto step = training::captured_step([&](const Batch& batch) { return parts(batch); });
  for (int i = 0; i < 2; ++i) (void)step(batch_of(i));
  State before(parts);
  parts.act = [](const Tensor&) { throw std::runtime_error("stop"); };
  for (int i = 0; i < 2; ++i) {
    CHECK(thrown<std::runtime_error>("stop", [&] { (void)step(batch_of(2)); }) == "");
    if (on_cpu()) before = State(parts);  // the step was made there
    CHECK(State(parts) == before);
  }
  parts.act = nullptr;
  for (int i = 2; i < 6; ++i) (void)step(batch_of(i));
  CHECK(step.replays() == (on_cpu() ? 0 : 3));
  // a plain step that throws, for a batch of another shape
  parts.act = [](const Tensor&) { throw std::runtime_error("stop"); };
  CHECK(thrown<std::runtime_error>("stop", [&] { (void)step(batch_of(6, 3)); }) == "");
  parts.act = nullptr;
  (void)step(batch_of(7));
  CHECK(step.replays() == (on_cpu() ? 0 : 4));
}

TEST_CASE("captured step: a scaler that is not enabled", "[nn][captured_step]") {
  Net net;
  optim::AdamW adam(parameters(net), {.lr = 0.1});
  optim::GradScaler scaler({.enabled = false});
  auto step = training::captured_step([&](const Batch& batch) {
    adam.zero_grad();
    scaler.scale(nn::cross_entropy(net(batch.x), batch.y)).backward();
    scaler.step(adam);
    scaler.update();
  });
  for (int i = 0; i < 5; ++i) step(batch_of(i));
  CHECK(step.replays() == (on_cpu() ? 0 : 2));
  CHECK(adam.steps(0) == 5);
}

TEST_CASE("captured step: wrong calls", "[nn][captured_step][errors]") {
  CHECK(thrown<ArgumentError>("captured_step: expected warm_up >= 1, got 0", [] {
          (void)training::captured_step([](const Tensor& x) { return x; }, {.warm_up = 0});
        }) == "");
  auto step = training::captured_step([](const Tensor& x) { return x * 2; });
  CHECK(thrown<ArgumentError>("captured_step: expected a batch of tensors that require no gradient",
                              [&] { (void)step(ones({2}, {.requires_grad = true})); }) == "");
  CHECK(thrown<ArgumentError>("captured_step: expected a batch with at least one tensor, got none",
                              [&] { (void)step(Tensor()); }) == "");
  auto moved = training::captured_step([](const Tensor& x) { return x * 2; }, {.device = here()});
  for (int i = 0; i < 4; ++i)  // from the host
    CHECK(moved(full({3}, i, {.device = "cpu"})).to_vector<double>() ==
          std::vector<double>(3, 2.0 * i));
}

}  // namespace braid::test::on_device
