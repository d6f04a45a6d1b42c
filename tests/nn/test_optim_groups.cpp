// Optimizers: parameter groups, gradient clipping, the state as a tree.
#include <limits>

#include "optim_cases.hpp"
#include "refused.hpp"
#include "trees.hpp"

namespace braid::test::on_device {

namespace {

Tensor same(const Tensor& t) { return t.detach().clone().requires_grad_(); }

}  // namespace

TEST_CASE("groups: each has its options, and does what an optimizer of its own would",
          "[nn][optim][groups]") {
  const Tensor a = leaf({5, 3}, 1), b = leaf({7}, 2), c = leaf({2}, 3, DType::float64);
  const Tensor a2 = same(a), b2 = same(b), c2 = same(c);
  const optim::AdamWOptions first{.lr = 0.1, .weight_decay = 0.2},
      second{.lr = 0.02, .beta1 = 0.5, .weight_decay = 0, .amsgrad = true, .maximize = true};
  optim::AdamW both({{{a, c}, first}, {{b}, second}}), one({a2, c2}, first), two({b2}, second);
  CHECK(both.groups() == 2);
  CHECK(both.parameters().size() == 3);
  CHECK(both.options(1).beta1 == 0.5);
  for (int step = 0; step < 4; ++step) {
    for (const auto& [x, y] : {std::pair{a, a2}, {b, b2}, {c, c2}}) {
      const Tensor g = random_tensor(test::sizes_of(x.shape()), x.dtype(), here(),
                                     static_cast<std::uint64_t>(step) + 9);
      x.set_grad(g);
      y.set_grad(g);
    }
    if (step == 2) both.set_lr(1, 0.3), two.set_lr(0.3);
    both.step(), one.step(), two.step();
  }
  CHECK(both.lr(0) == 0.1);
  CHECK(both.lr(1) == 0.3);
  CHECK_SAME_BITS(a.detach(), a2.detach());
  CHECK_SAME_BITS(b.detach(), b2.detach());
  CHECK_SAME_BITS(c.detach(), c2.detach());
  // Only b's group has amsgrad, which stores the largest squares.
  CHECK(keys(state_dict(both)) == Names{"exp_avg.0", "exp_avg.1", "exp_avg.2", "exp_avg_sq.0",
                                        "exp_avg_sq.1", "exp_avg_sq.2", "max_exp_avg_sq.2",
                                        "steps"});
  optim::AdamW again({{{a, c}, first}, {{b}, second}});
  CHECK(load_state_dict(again, state_dict(both)).loaded == 8);
  CHECK(again.steps(2) == 4);
  both.set_lr(0.5);
  CHECK(both.lr(0) == 0.5);
  CHECK(both.lr(1) == 0.5);
}

TEST_CASE("groups: what is refused", "[nn][optim][groups][errors]") {
  const Tensor a = leaf({2}, 1);
  optim::SGD sgd({a}, {.lr = 0.1});
  CHECK_THROWS_TEXT(IndexError, "SGD: lr: expected a group below 1, got 1", sgd.lr(1));
  CHECK_THROWS_TEXT(IndexError, "SGD: set_lr: expected a group below 1, got 1", sgd.set_lr(1, 0.1));
  CHECK_THROWS_TEXT(ArgumentError,
                    "SGD: expected an optimizer made with momentum or beta1, got one without",
                    sgd.set_momentum(0, 0.5));
  optim::Adam adam({a}, {});
  CHECK_THROWS_TEXT(ArgumentError, "Adam: expected 0 <= momentum < 1, got 1",
                    adam.set_momentum(0, 1));
  CHECK(adam.momentum() == 0.9);
}

TEST_CASE("clipping: the total norm of any order, over types and devices", "[nn][optim][clip]") {
  const Tensor a = tensor({{3.0, -4.0}, {0.0, 12.0}}),
               b = tensor({84.0}, {.dtype = DType::float64}), none = zeros({0, 3});
  const std::vector<Tensor> list{a, b.to(there()), none};
  const auto norm = [&](double p) { return optim::get_total_norm(list, p).item<double>(); };
  CHECK(norm(2) == Approx(85).epsilon(1e-6));
  CHECK(norm(1) == Approx(103).epsilon(1e-6));
  CHECK(norm(3) == Approx(std::cbrt(27.0 + 64 + 1728 + 592704)).epsilon(1e-6));
  CHECK(norm(INFINITY) == 84);
  CHECK(norm(0) == 4);
  CHECK(optim::get_total_norm(list).device() == here());
  CHECK(optim::get_total_norm(list).dtype() == DType::float32);
  CHECK(optim::get_total_norm(std::vector<Tensor>{}).item<double>() == 0);
  // More tensors than one launch takes; some are empty.
  std::vector<Tensor> many;
  double squares = 0;
  for (std::int64_t i = 0; i < 600; ++i) {
    many.push_back(full({i % 91}, 0.5 + static_cast<double>(i % 3)));
    squares += static_cast<double>(i % 91) * std::pow(0.5 + static_cast<double>(i % 3), 2);
  }
  CHECK(optim::get_total_norm(many).item<double>() == Approx(std::sqrt(squares)).epsilon(1e-6));
  // A norm that does not fit in float16.
  const Tensor halves = full({4}, 40000, {.dtype = DType::float16});
  CHECK(optim::get_total_norm(std::vector<Tensor>{halves}).item<double>() ==
        Approx(80000).epsilon(1e-3));
  refuses<ArgumentError>("get_total_norm: expected ")({
      {"norm_type >= 0, got -1", [&] { norm(-1); }},
      {"norm_type >= 0, got nan", [&] { norm(std::nan("")); }},
      {"defined tensors, got an undefined one at position 1",
       [&] { return optim::get_total_norm(std::vector<Tensor>{a, Tensor()}); }},
  });
  CHECK_THROWS_TEXT(DTypeError, "get_total_norm: expected floating point tensors, got int64",
                    optim::get_total_norm(std::vector<Tensor>{tensor({1, 2})}));
}

TEST_CASE("clipping: strided, empty and shared gradients of several types", "[nn][optim][clip]") {
  for (const double p : std::vector<double>{2, 1, INFINITY, 3, 0}) {
    CAPTURE(p);
    const auto list = [&](bool contiguous) {
      const std::vector<Tensor> parameters{leaf({5, 7}, 1), leaf({0}, 2),
                                           leaf({6}, 3, DType::bfloat16), leaf({5, 7}, 4),
                                           leaf({6}, 5, DType::float64)};
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        Tensor g = random_tensor(test::sizes_of(parameters[i].shape()), parameters[i].dtype(),
                                 here(), i + 9);
        if (g.shape().rank() == 2 && !contiguous) g = g.t().contiguous().t();
        parameters[i].set_grad(g);
      }
      return parameters;
    };
    const std::vector<Tensor> dense = list(true), strided = list(false);
    const Tensor norm = optim::clip_grad_norm_(dense, 0.5, p);
    CHECK_SAME_BITS(optim::clip_grad_norm_(strided, 0.5, p), norm);
    CHECK_FALSE(strided[0].grad().is_contiguous());
    for (std::size_t i = 0; i < dense.size(); ++i)
      CHECK_SAME_BITS(strided[i].grad().contiguous(), dense[i].grad());
    if (p == 0) continue;
    std::vector<Tensor> after;
    for (const Tensor& parameter : dense) after.push_back(parameter.grad());
    CHECK(optim::get_total_norm(after, p).item<double>() == Approx(0.5).epsilon(4e-3));
  }
  // one gradient of two parameters is multiplied twice
  const std::vector<Tensor> pair{leaf({3}, 1), leaf({3}, 2)};
  const Tensor shared = full({3}, 2.0);
  for (const Tensor& each : pair) each.set_grad(shared);
  CHECK(optim::clip_grad_norm_(pair, 3, INFINITY).item<double>() == 2);
  CHECK(optim::clip_grad_norm_(pair, 1, INFINITY).item<double>() == 2);
  CHECK(shared.to_vector<double>()[0] == Approx(0.5).epsilon(1e-5));
  const std::uint64_t version = shared.version();
  optim::clip_grad_norm_(std::vector<Tensor>{pair[0]}, 1);
  CHECK(shared.version() > version);
}

TEST_CASE("clipping: without memory no gradient is changed", "[nn][optim][clip]") {
  const std::vector<Tensor> parameters{leaf({6}, 1), leaf({5, 7}, 2, DType::bfloat16),
                                       leaf({5, 7}, 3, DType::bfloat16)};
  std::vector<Tensor> before;
  for (const Tensor& p : parameters) {
    const Tensor g = random_tensor(test::sizes_of(p.shape()), p.dtype(), here(), 9);
    p.set_grad(p.dim() == 2 ? g.t().contiguous().t() : g);
    before.push_back(g);
  }
  const auto clip = [&] { return optim::clip_grad_norm_(parameters, 1); };
  std::uint64_t failed = 0;
  for (bool clipped = false; !clipped; ++failed) {
    REQUIRE(failed < 100);
    fail_allocation(here(), failed + 1);
    try {
      (void)clip();
      clipped = true;
    } catch (const OutOfMemoryError&) {
      for (std::size_t i = 0; i < before.size(); ++i)
        CHECK_SAME_BITS(parameters[i].grad().contiguous(), before[i]);
    }
    fail_allocation(here(), 0);
  }
  CHECK(failed > 4);
  CHECK(optim::get_total_norm(std::vector<Tensor>{parameters[1].grad()}).item<double>() < 1);
}

TEST_CASE("clipping: by norm and by value, in place, with PyTorch's numbers", "[nn][optim][clip]") {
  const Tensor a = leaf({2}, 1), b = leaf({2}, 2, DType::float64), unused = leaf({3}, 3);
  const std::vector<Tensor> parameters{a, unused, b};
  const auto fresh = [&] {
    a.set_grad(tensor({3.0, 0.0}));
    b.set_grad(tensor({0.0, -4.0}, {.dtype = DType::float64}));
  };
  fresh();
  CHECK(optim::clip_grad_norm_(parameters, 10).item<double>() == 5);
  // the norm is below the limit: the factor is exactly 1
  CHECK(a.grad().to_vector<double>() == std::vector<double>{3, 0});
  const TensorImpl* kept = a.grad().id();
  CHECK(optim::clip_grad_norm_(parameters, 1).item<double>() == 5);
  CHECK(a.grad().id() == kept);
  CHECK(a.grad().to_vector<double>()[0] == Approx(0.6 / (1 + 2e-7)).epsilon(1e-6));
  CHECK(b.grad().to_vector<double>()[1] == Approx(-0.8).epsilon(1e-6));
  CHECK_FALSE(unused.grad().defined());
  fresh();
  CHECK(optim::clip_grad_norm_(parameters, 2, INFINITY).item<double>() == 4);
  CHECK(b.grad().to_vector<double>()[1] == Approx(-2).epsilon(1e-6));
  fresh();
  optim::clip_grad_value_(parameters, 3.5);
  CHECK(a.grad().to_vector<double>() == std::vector<double>{3, 0});
  CHECK(b.grad().to_vector<double>() == std::vector<double>{0, -3.5});
  a.set_grad(tensor({std::nan(""), -INFINITY}, {.dtype = DType::float32}));
  optim::clip_grad_value_(parameters, 2);
  CHECK(std::isnan(a.grad().to_vector<double>()[0]));
  CHECK(a.grad().to_vector<double>()[1] == -2);
  a.set_grad(tensor({std::nan(""), 1.0}, {.dtype = DType::float32}));
  const Tensor before = b.grad().clone();
  const auto norm = [&](double most, double p = 2, bool finite = false) {
    optim::clip_grad_norm_(parameters, most, p, finite);
  };
  refuses<ArgumentError>("clip_grad_norm_: expected ")({
      {"a finite total norm of order 2, got nan", [&] { norm(1, 2, true); }},
      {"max_norm >= 0, got -1", [&] { norm(-1); }},
      {"max_norm >= 0, got nan", [&] { norm(std::nan("")); }},
      {"norm_type >= 0, got -2", [&] { norm(1, -2); }},
  });
  const std::vector<Tensor> none{Tensor()};
  refuses<ArgumentError>("clip_grad_value_: expected ")({
      {"clip_value >= 0, got -1", [&] { optim::clip_grad_value_(parameters, -1); }},
      {"clip_value >= 0, got nan", [&] { optim::clip_grad_value_(parameters, std::nan("")); }},
      {"defined parameters, got an undefined one", [&] { optim::clip_grad_value_(none, 1); }},
  });
  CHECK_SAME_BITS(b.grad(), before);
}

TEST_CASE("optimizers: the state is a tree, saved and restored", "[nn][optim][state]") {
  const auto run = [](optim::Optimizer& optimizer, const std::vector<Tensor>& parameters, int from,
                      int to) {
    for (int step = from; step < to; ++step) {
      optimizer.zero_grad();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (i == 1 && step < 4) continue;
        parameters[i].set_grad(random_tensor(test::sizes_of(parameters[i].shape()), DType::float32,
                                             {}, static_cast<std::uint64_t>(step) * 7 + i));
      }
      optimizer.step();
    }
  };
  const auto check = [&](const auto& options, auto make, const Names& expected) {
    const std::vector<Tensor> through{leaf({6}, 1), leaf({2, 2}, 2)};
    std::vector<Tensor> resumed;
    auto first = make(through, options);
    run(*first, through, 0, 3);  // the second parameter has no state yet
    for (const Tensor& t : through) resumed.push_back(t.detach().clone().requires_grad_());
    const StateDict saved = copied(state_dict(*first));
    CHECK(keys(saved) == expected);
    CHECK(saved.at("steps").to_vector<int>() == std::vector<int>{3, 0});
    const StateDict before = copied(saved);
    auto second = make(resumed, options);
    CHECK(load_state_dict(*second, saved).loaded == expected.size());
    run(*first, through, 3, 9);
    run(*second, resumed, 3, 9);
    for (std::size_t i = 0; i < through.size(); ++i) CHECK_SAME_BITS(through[i], resumed[i]);
    // loading copies the tensors
    for (const auto& [key, t] : saved) CHECK_SAME_BITS(t, before.at(key));
    // Loading over existing state restores the saved state.
    load_state_dict(*second, saved);
    CHECK(second->steps(0) == 3);
    CHECK(state_dict(*second).size() == expected.size());
    CHECK_SAME_BITS(state_dict(*second).at(expected[0]), saved.at(expected[0]));
  };
  const auto sgd = [](const std::vector<Tensor>& p, const optim::SgdOptions& o) {
    return std::make_unique<optim::SGD>(p, o);
  };
  const auto adamw = [](const std::vector<Tensor>& p, const optim::AdamWOptions& o) {
    return std::make_unique<optim::AdamW>(p, o);
  };
  check(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5}, sgd,
        {"momentum.0", "steps"});
  check(optim::SgdOptions{.lr = 0.1}, sgd, {"steps"});
  check(optim::AdamWOptions{.lr = 0.1}, adamw, {"exp_avg.0", "exp_avg_sq.0", "steps"});
}

TEST_CASE("optimizers: a state that does not fit is refused whole", "[nn][optim][state][errors]") {
  const Tensor a = leaf({6}, 1), b = leaf({2}, 2);
  optim::AdamW adamw({a, b});
  a.set_grad(ones({6}));
  adamw.step();
  StateDict dict = copied(state_dict(adamw));
  const Tensor before = dict.at("exp_avg.0");
  dict.set("exp_avg.0", ones({5}));
  dict.set("exp_avg_sq.0", ones({6}, {.dtype = DType::float64}));
  dict.set("momentum.0", ones({6}));
  dict.set("steps", tensor(std::vector<std::int64_t>{4, 2}));
  CHECK_THROWS_TEXT(
      ArgumentError,
      "load_state_dict: expected the state of AdamW over 2 parameters, got 5 keys that do not fit\n"
      "  exp_avg.0: expected shape [6], got [5]\n"
      "  exp_avg.1: is missing, and parameter 1 was updated 2 times\n"
      "  exp_avg_sq.0: expected float32, got float64\n"
      "  exp_avg_sq.1: is missing, and parameter 1 was updated 2 times\n"
      "  momentum.0: was not expected",
      load_state_dict(adamw, dict));
  CHECK(adamw.steps(0) == 1);
  CHECK_SAME_BITS(state_dict(adamw).at("exp_avg.0"), before);
  CHECK_THROWS_TEXT(ArgumentError, "1 key that does not fit\n  steps: is missing",
                    load_state_dict(adamw, StateDict()));
  CHECK_THROWS_TEXT(
      ArgumentError, "steps: expected counts >= 0, got -1",
      load_state_dict(adamw, StateDict{{"steps", tensor(std::vector<std::int64_t>{0, -1})}}));
  StateDict late = copied(state_dict(adamw));  // the next step's count would overflow
  late.set("steps", tensor(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(), 0}));
  CHECK_THROWS_TEXT(ArgumentError, "steps: expected counts <= 2^53, got 9223372036854775807",
                    load_state_dict(adamw, late));
  CHECK(adamw.steps(0) == 1);
}

}  // namespace braid::test::on_device
