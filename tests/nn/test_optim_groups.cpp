// Parameter groups, and clipping of gradients.
#include <cmath>
#include <limits>
#include <vector>

#include <braid/braid.hpp>

#include "support/errors.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {

namespace {

Tensor leaf(const Shape& shape, DType dtype, std::uint64_t seed) {
  return random_tensor(test::sizes_of(shape), dtype, here(), seed, -1, 1).requires_grad_();
}
Tensor same(const Tensor& t) { return t.detach().clone().requires_grad_(); }

}  // namespace

TEST_CASE("groups: each has its options, and does what an optimizer of its own would",
          "[nn][optim][groups]") {
  const Tensor a = leaf({5, 3}, DType::float32, 1), b = leaf({7}, DType::float32, 2),
               c = leaf({2}, DType::float64, 3);
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
  // Only b keeps the largest square.
  std::vector<std::string> keys;
  for (const auto& [key, t] : state_dict(both)) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"exp_avg.0", "exp_avg.1", "exp_avg.2", "exp_avg_sq.0",
                                         "exp_avg_sq.1", "exp_avg_sq.2", "max_exp_avg_sq.2",
                                         "steps"});
  optim::AdamW again({{{a, c}, first}, {{b}, second}});
  CHECK(load_state_dict(again, state_dict(both)).loaded == keys.size());
  CHECK(again.steps(2) == 4);
  both.set_lr(0.5);
  CHECK(both.lr(0) == 0.5);
  CHECK(both.lr(1) == 0.5);
}

TEST_CASE("groups: what is refused", "[nn][optim][groups][errors]") {
  const Tensor a = leaf({2}, DType::float32, 1);
  CHECK_THROWS_TEXT(ArgumentError,
                    "SGD: expected every parameter once, got the one at position 1 twice",
                    optim::SGD({{{a}, {}}, {{a}, {.lr = 1}}}));
  CHECK_THROWS_TEXT(ArgumentError, "SGD: expected lr >= 0, got -1",
                    optim::SGD({{{a}, {}}, {{same(a)}, {.lr = -1}}}));
  CHECK_THROWS_TEXT(ArgumentError, "Lion: expected 0 <= beta1 < 1, got 1",
                    optim::Lion({a}, {.beta1 = 1}));
  CHECK_THROWS_TEXT(ArgumentError, "Lion: expected lr >= 0, got -1", optim::Lion({a}, {.lr = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "Lion: expected weight_decay >= 0, got -1",
                    optim::Lion({a}, {.weight_decay = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "RMSprop: expected alpha >= 0, got -1",
                    optim::RMSprop({a}, {.alpha = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "RMSprop: expected momentum >= 0, got -1",
                    optim::RMSprop({a}, {.momentum = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "RMSprop: expected eps >= 0, got -1",
                    optim::RMSprop({a}, {.eps = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "Adagrad: expected lr_decay >= 0, got -1",
                    optim::Adagrad({a}, {.lr_decay = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "Adagrad: expected initial_accumulator_value >= 0, got -1",
                    optim::Adagrad({a}, {.initial_accumulator_value = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "Adam: expected 0 <= beta2 < 1, got 1",
                    optim::Adam({a}, {.beta2 = 1}));
  CHECK_THROWS_TEXT(ArgumentError, "Adam: expected at least one parameter, got 0",
                    optim::Adam(std::vector<Tensor>{}));
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
  CHECK(norm(std::numeric_limits<double>::infinity()) == 84);
  CHECK(norm(0) == 4);
  CHECK(optim::get_total_norm(list).device() == here());
  CHECK(optim::get_total_norm(list).dtype() == DType::float32);
  CHECK(optim::get_total_norm(std::vector<Tensor>{}).item<double>() == 0);
  // A norm that float16 does not hold.
  const Tensor halves = full({4}, 40000, {.dtype = DType::float16});
  CHECK(optim::get_total_norm(std::vector<Tensor>{halves}).item<double>() ==
        Approx(80000).epsilon(1e-3));
  CHECK_THROWS_TEXT(ArgumentError, "get_total_norm: expected norm_type >= 0, got -1", norm(-1));
  CHECK_THROWS_TEXT(ArgumentError, "get_total_norm: expected norm_type >= 0, got nan",
                    norm(std::nan("")));
  CHECK_THROWS_TEXT(ArgumentError,
                    "get_total_norm: expected defined tensors, got an undefined one at position 1",
                    optim::get_total_norm(std::vector<Tensor>{a, Tensor()}));
  CHECK_THROWS_TEXT(DTypeError, "get_total_norm: expected floating point tensors, got int64",
                    optim::get_total_norm(std::vector<Tensor>{tensor({1, 2})}));
}

TEST_CASE("clipping: by norm and by value, in place, with PyTorch's numbers", "[nn][optim][clip]") {
  const Tensor a = leaf({2}, DType::float32, 1), b = leaf({2}, DType::float64, 2),
               unused = leaf({3}, DType::float32, 3);
  const std::vector<Tensor> parameters{a, unused, b};
  const auto fresh = [&] {
    a.set_grad(tensor({3.0, 0.0}));
    b.set_grad(tensor({0.0, -4.0}, {.dtype = DType::float64}));
  };
  fresh();
  CHECK(optim::clip_grad_norm_(parameters, 10).item<double>() == 5);
  // short enough: times exactly 1
  CHECK(a.grad().to_vector<double>() == std::vector<double>{3, 0});
  const TensorImpl* kept = a.grad().id();
  CHECK(optim::clip_grad_norm_(parameters, 1).item<double>() == 5);
  CHECK(a.grad().id() == kept);
  CHECK(a.grad().to_vector<double>()[0] == Approx(0.6 / (1 + 2e-7)).epsilon(1e-6));
  CHECK(b.grad().to_vector<double>()[1] == Approx(-0.8).epsilon(1e-6));
  CHECK_FALSE(unused.grad().defined());
  fresh();
  CHECK(optim::clip_grad_norm_(parameters, 2, std::numeric_limits<double>::infinity())
            .item<double>() == 4);
  CHECK(b.grad().to_vector<double>()[1] == Approx(-2).epsilon(1e-6));
  fresh();
  optim::clip_grad_value_(parameters, 3.5);
  CHECK(a.grad().to_vector<double>() == std::vector<double>{3, 0});
  CHECK(b.grad().to_vector<double>() == std::vector<double>{0, -3.5});
  a.set_grad(
      tensor({std::nan(""), -std::numeric_limits<double>::infinity()}, {.dtype = DType::float32}));
  optim::clip_grad_value_(parameters, 2);
  CHECK(std::isnan(a.grad().to_vector<double>()[0]));
  CHECK(a.grad().to_vector<double>()[1] == -2);
  a.set_grad(tensor({std::nan(""), 1.0}, {.dtype = DType::float32}));
  const Tensor before = b.grad().clone();
  CHECK_THROWS_TEXT(ArgumentError,
                    "clip_grad_norm_: expected a finite total norm of order 2, got nan",
                    optim::clip_grad_norm_(parameters, 1, 2, true));
  CHECK_SAME_BITS(b.grad(), before);
  CHECK_THROWS_TEXT(ArgumentError, "clip_grad_norm_: expected max_norm >= 0, got -1",
                    optim::clip_grad_norm_(parameters, -1));
  CHECK_THROWS_TEXT(ArgumentError, "clip_grad_norm_: expected max_norm >= 0, got nan",
                    optim::clip_grad_norm_(parameters, std::nan("")));
  CHECK_THROWS_TEXT(ArgumentError, "clip_grad_norm_: expected norm_type >= 0, got -2",
                    optim::clip_grad_norm_(parameters, 1, -2));
  CHECK_THROWS_TEXT(ArgumentError, "clip_grad_value_: expected clip_value >= 0, got -1",
                    optim::clip_grad_value_(parameters, -1));
  CHECK_THROWS_TEXT(ArgumentError, "clip_grad_value_: expected clip_value >= 0, got nan",
                    optim::clip_grad_value_(parameters, std::nan("")));
  CHECK_THROWS_TEXT(ArgumentError,
                    "clip_grad_value_: expected defined parameters, got an undefined one",
                    optim::clip_grad_value_(std::vector<Tensor>{Tensor()}, 1));
}

}  // namespace braid::test::on_device
