// Optimizers: what a step must not change, and errors.
#include <braid/core/internal/body.hpp>

#include "optim_cases.hpp"
#include "refused.hpp"

namespace braid::test::on_device {

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

TEST_CASE("optimizers: a step that cannot be taken changes nothing", "[nn][optim][errors]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Tensor a = leaf({300}, 1), b = leaf({300}, 2);
    const auto optimizer = c.make({a, b});
    const Numbers before = a.to_vector<double>();
    const auto fails = [&]<class E>(E, const std::string& text) {
      CHECK(thrown<E>(text, [&] { optimizer->step(); }) == "");
      CHECK(a.to_vector<double>() == before);
      CHECK(optimizer->steps(0) == 0);
    };
    a.set_grad(ones({300}));
    b.set_grad(ones({300}));
    // set_grad rejects such gradients. A gradient can still stop fitting if its parameter is
    // changed.
    const std::string gradient = ": expected the gradient of parameter 1 ";
    b.impl()->grad = ones({3}).impl();
    fails(ShapeError(""), gradient + "to have its shape [300], got [3]");
    b.impl()->grad = ones({300}, {.dtype = DType::float64}).impl();
    fails(DTypeError(""), gradient + "to be float32, got float64");
    b.impl()->grad = ones({300}, {.device = there()}).impl();
    fails(DeviceError(""), here(gradient + "on cpu:0, got cpu:1"));
    const Tensor wide = zeros({1}).expand({300});  // b gets it below, as if a model had been moved
    const Tensor own = b.detach();
    b.set_grad(ones({300}));
    detail::replace_body(b, wide);
    fails(LayoutError(""),
          ": expected parameters whose elements each have their own memory, got an "
          "expanded one at position 1");
    detail::replace_body(b, own);
    // Each allocation of a step fails in turn. A strided gradient needs a copy, and the state is
    // allocated.
    b.set_grad(ones({600}).slice(0, 0, 600, 2));
    const std::uint64_t start = memory_stats(here()).allocations;
    {
      const Tensor pa = a.detach().clone().requires_grad_(),
                   pb = b.detach().clone().requires_grad_();
      pa.set_grad(a.grad());
      pb.set_grad(b.grad());
      const std::uint64_t made = memory_stats(here()).allocations;
      c.make({pa, pb})->step();
      const std::uint64_t needed = memory_stats(here()).allocations - made;
      CHECK(made > start);
      // the probe allocated its step counts, which are always on the CPU
      const std::uint64_t of_step = needed - (on_cpu() ? 1 : 0);
      REQUIRE(of_step >= 1);  // the contiguous copy
      for (std::uint64_t k = 1; k <= of_step; ++k) {
        fail_allocation(here(), k);
        try {
          const NoGrad guard;
          optimizer->step();
          CHECK(k > 1);  // the state of an earlier attempt is kept, so fewer are needed
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

TEST_CASE("optimizers: a factor of the gradients does what clipping them before does, bit for bit",
          "[nn][optim][clip]") {
  for (const DType t : {DType::float32, DType::float64, DType::bfloat16, DType::float16})
    for (const Case& c : cases()) {
      CAPTURE(c.name, name_of(t));
      const auto make = [&] {
        return std::vector<Tensor>{leaf({300}, 1, t), leaf({5, 7}, 2, t), leaf({0}, 3, t),
                                   leaf({3}, 4, t), leaf({9}, 5, DType::float64)};
      };
      const std::vector<Tensor> a = make(), b = make();
      const auto before = c.make(a), fused = c.make(b);
      for (int step = 0; step < 3; ++step) {
        std::vector<Tensor> kept;
        for (std::size_t i = 0; i < a.size(); ++i) {
          if (i == 3 && step == 0) continue;  // without a gradient
          const std::uint64_t seed = static_cast<std::uint64_t>(step) * 9 + i;
          Tensor g = random_tensor(test::sizes_of(a[i].shape()), a[i].dtype(), here(), seed);
          if (i == 1) g = g.t().contiguous().t();
          a[i].set_grad(g.clone());
          b[i].set_grad(g);
          kept.push_back(g.clone());
        }
        const double max_norm = step == 1 ? 1e6 : 0.7;
        const Tensor norm = optim::clip_grad_norm_(a, max_norm);
        const optim::GradClip clip = optim::clip_grad_norm(b, max_norm);
        CHECK_SAME_BITS(clip.norm, norm);
        before->step();
        fused->step(clip.factor);
        std::size_t k = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
          CHECK_SAME_BITS(a[i].detach(), b[i].detach());
          if (b[i].grad().defined()) CHECK_SAME_BITS(b[i].grad(), kept[k++]);
        }
      }
      for (const auto& [key, state] : state_dict(*before))
        CHECK_SAME_BITS(state, state_dict(*fused).at(key));
    }
}

TEST_CASE("optimizers: a factor on another device and of another dtype, and wrong ones",
          "[nn][optim][clip][errors]") {
  const Tensor p = leaf({4}, 1), q = leaf({4}, 1);
  optim::SGD one({p}, {.lr = 1}), other({q}, {.lr = 1});
  p.set_grad(full({4}, 0.5));
  q.set_grad(ones({4}));
  one.step();
  other.step(full({1, 1}, 0.5, {.device = there(), .dtype = DType::float64}));
  CHECK_SAME_BITS(p.detach(), q.detach());
  const Tensor before = q.detach().clone();
  refuses<ArgumentError>("SGD: step: expected ")(
      {{"a defined grad_factor, got an undefined one", [&] { other.step(Tensor()); }}});
  refuses<DTypeError>("SGD: step: expected ")(
      {{"a floating point grad_factor, got int64", [&] { other.step(tensor({1})); }}});
  refuses<ShapeError>("SGD: step: expected ")(
      {{"a grad_factor of one element, got shape [2]", [&] { other.step(ones({2})); }}});
  CHECK_SAME_BITS(q.detach(), before);
  CHECK(other.steps(0) == 1);
  other.step();  // without a factor: none is left from the steps before
  CHECK_SAME_BITS(q.detach(), before - 1);
}

TEST_CASE("optimizers: the second half of a step does nothing without the first",
          "[nn][optim][errors]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Tensor a = leaf({300}, 1), b = leaf({300}, 2);
    const auto optimizer = c.make({a, b});
    a.set_grad(ones({600}).slice(0, 0, 600, 2));  // its contiguous copy lives until the step ends
    b.set_grad(ones({300}));
    optimizer->prepare_step();
    optimizer->finish_step();
    const Numbers after = a.to_vector<double>();
    optimizer->finish_step();
    CHECK(a.to_vector<double>() == after);
    CHECK(optimizer->steps(0) == 1);
    b.impl()->grad = ones({3}).impl();  // does not fit: detected after parameter 0 was prepared
    CHECK_THROWS_AS(optimizer->prepare_step(), ShapeError);
    optimizer->finish_step();
    CHECK(a.to_vector<double>() == after);
    CHECK(optimizer->steps(0) == 1);
  }
}

TEST_CASE("optimizers: a step that finds no gradient at all warns once, and says why",
          "[nn][optim][errors]") {
  static std::vector<std::string> warnings;
  warnings.clear();
  const auto before =
      set_warning_handler([](std::string_view text) { warnings.emplace_back(text); });
  nn::Linear net(2, 2, {.device = here()});
  optim::SGD optimizer(parameters(net));
  const auto train_on_a_copy = [&](nn::Linear copy) {
    copy(ones({1, 2})).sum().backward();
    optimizer.step();
    optimizer.step();
  };
  train_on_a_copy(net);
  REQUIRE(warnings.size() == 1);
  CHECK(matches(
      warnings[0],
      "SGD: step: expected a gradient of at least one of 2 parameters, got none, so nothing "
      "was updated*copy of the model*by reference*zero_grad"));
  train_on_a_copy(net);
  CHECK(warnings.size() == 1);
  optim::AdamW other(parameters(net));
  net(ones({1, 2})).sum().backward();
  other.step();
  CHECK(warnings.size() == 1);
  requires_grad_(net, false);
  zero_grad(net);
  other.step();
  REQUIRE(warnings.size() == 2);
  CHECK(matches(warnings[1], "AdamW: step: expected*got none*none requires one*requires_grad_"));
  set_warning_handler(before);
}

TEST_CASE("optimizers: allocate nothing once the state exists", "[nn][optim]") {
  for (const Case& c : cases()) {
    // Ops return new tensors, so a composed update allocates in every step. The blocks come from
    // the allocator's cache, which test_allocator.cpp tests.
    if (c.composed) continue;
    INFO(c.name);
    const Tensor a = leaf({5, 2}, 1), b = leaf({5}, 2);
    const auto optimizer = c.make({a, b});
    a.set_grad(ones({5, 2}));
    b.set_grad(ones({5}));
    optimizer->step();
    const std::uint64_t before = memory_stats(here()).allocations;
    for (int i = 0; i < 10; ++i) optimizer->step();
    CHECK(memory_stats(here()).allocations == before);
  }
}

TEST_CASE("optimizers: options out of range", "[nn][optim][errors]") {
  const Tensor p = leaf({2}, 1);
  for (const BadOptions& bad : bad_options()) {
    INFO(bad.text);
    CHECK(thrown<ArgumentError>(bad.text, [&] { bad.make(p); }) == "");
  }
  CHECK_THROWS_TEXT(ArgumentError, "Adam: expected at least one parameter, got 0",
                    optim::Adam(std::vector<Tensor>{}));
  optim::SGD made({p}, {.lr = 0.5});
  CHECK_THROWS_TEXT(ArgumentError, "SGD: expected lr >= 0, got -3", made.set_lr(-3));
  CHECK(made.lr() == 0.5);
  made.set_lr(0.25);
  CHECK(made.options().lr == 0.25);
  p.set_grad(ones({2}));
  const Numbers before = p.to_vector<double>();
  made.step();
  CHECK(p.to_vector<double>()[0] == Approx(before[0] - 0.25));
}

TEST_CASE("optimizers: parameters that are refused", "[nn][optim][errors]") {
  const Tensor p = leaf({2}, 1), wide = zeros({1}).expand({2}).requires_grad_();
  const auto make = [](std::vector<Tensor> list) { optim::SGD made(std::move(list)); };
  refuses<ArgumentError>("SGD: expected ")({
      {"at least one parameter, got 0", [&] { make({}); }},
      {"every parameter once, got the one at position 2 twice",
       [&] { make({p, leaf({1}, 2), p}); }},
      {"every parameter once, got the one at position 1 twice",
       [&] { optim::SGD({{{p}, {}}, {{p}, {.lr = 1}}}); }},
      {"parameters that are leaves, got one that an op made at position 0",
       [&] { make({p * 2.0}); }},
      {"defined parameters, got an undefined one at position 1", [&] { make({p, {}}); }},
  });
  CHECK_THROWS_TEXT(LayoutError,
                    "SGD: expected parameters whose elements each have their own memory, got an "
                    "expanded one at position 1",
                    make({p, wide}));
  CHECK_THROWS_TEXT(DTypeError, "SGD: expected floating point parameters, got int64 at position 0",
                    make({ones({1}, {.dtype = DType::int64})}));
}

}  // namespace braid::test::on_device
