// GradScaler: the scale over overflows and steps, and when a step is left out.
#include <limits>

#include <braid/braid.hpp>

#include "layer_here.hpp"
#include "refused.hpp"
#include "support/errors.hpp"

namespace braid::test::on_device {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

struct Setup {
  nn::Parameter w{tensor({1.0, 2.0}, {.device = here(), .dtype = DType::float32})};
  optim::SGD optimizer{std::vector<Tensor>{w}, {.lr = 0.5}};
  /// Gives w the gradient of scale(factor · Σ w).
  void backward(optim::GradScaler& scaler, double factor) {
    optimizer.zero_grad();
    scaler.scale((w * factor).sum()).backward();
  }
  [[nodiscard]] std::vector<float> values() const { return w.to_vector<float>(); }
};

}  // namespace

TEST_CASE("GradScaler: a step with finite gradients is that of the unscaled loss", "[nn][amp]") {
  Setup s;
  optim::GradScaler scaler({.init_scale = 1024});
  s.backward(scaler, 3);
  CHECK(s.w.grad().to_vector<float>() == std::vector<float>{3072, 3072});
  scaler.unscale_(s.optimizer);
  CHECK(s.w.grad().to_vector<float>() == std::vector<float>{3, 3});
  CHECK(scaler.step(s.optimizer));
  scaler.update();
  CHECK(s.values() == std::vector<float>{-0.5, 0.5});
  s.backward(scaler, 1);
  CHECK(scaler.step(s.optimizer));  // divides, as unscale_ was not called
  CHECK(s.values() == std::vector<float>{-1, 0});
}

TEST_CASE("GradScaler: an overflow leaves the step out and lowers the scale; growth by interval",
          "[nn][amp]") {
  Setup s;
  optim::GradScaler scaler({.init_scale = 8, .growth_interval = 2});
  const auto iteration = [&](double factor) {
    s.backward(scaler, factor);
    const bool made = scaler.step(s.optimizer);
    scaler.update();
    return made;
  };
  const std::vector<float> before = s.values();
  for (const double bad : {kInf, -kInf, kNan}) {
    const double scale = scaler.get_scale();
    CHECK_FALSE(iteration(bad));
    CHECK(s.values() == before);
    CHECK(scaler.get_scale() == scale / 2);
  }
  CHECK(scaler.get_scale() == 1);
  CHECK(iteration(1));
  CHECK(scaler.get_scale() == 1);
  CHECK(iteration(1));
  CHECK(scaler.get_scale() == 2);
  CHECK(iteration(1));
  CHECK_FALSE(iteration(kInf));  // the count begins again
  CHECK(iteration(1));
  CHECK(scaler.get_scale() == 1);
  CHECK(iteration(1));
  CHECK(scaler.get_scale() == 2);
  optim::GradScaler large({.init_scale = 3e38, .growth_interval = 1});
  s.backward(large, 0);
  (void)large.step(s.optimizer);
  large.update();
  CHECK(large.get_scale() == Approx(3e38));  // would be infinite in float32
}

TEST_CASE("GradScaler: saved and restored; disabled it does nothing", "[nn][amp]") {
  Setup s;
  optim::GradScaler scaler({.init_scale = 8, .growth_interval = 2});
  s.backward(scaler, 1);
  (void)scaler.step(s.optimizer);
  scaler.update();
  const StateDict dict = state_dict(scaler);
  CHECK(dict.contains("scale"));
  CHECK(dict.contains("growth_tracker"));
  optim::GradScaler other({.growth_interval = 2});
  load_state_dict(other, dict);
  s.backward(other, 1);
  (void)other.step(s.optimizer);
  other.update();
  CHECK(other.get_scale() == 16);
  for (const auto& [name, value] :
       {std::pair("scale", kNan), {"scale", 0.0}, {"scale", kInf}, {"growth_tracker", -1.0}}) {
    INFO(name << " " << value);
    StateDict bad = state_dict(optim::GradScaler({.init_scale = 2}));
    bad.at(name).fill_(value);
    CHECK_THROWS_TEXT(ArgumentError,
                      "load_state_dict: expected " + std::string(name) + " of GradScaler to be ",
                      load_state_dict(other, bad));
  }
  CHECK_THROWS_TEXT(ArgumentError, "missing: growth_tracker",
                    load_state_dict(other, StateDict{{"scale", dict.at("scale")}}));
  CHECK(other.get_scale() == 16);
  optim::GradScaler off({.enabled = false});
  CHECK(off.get_scale() == 1);
  const Tensor loss = s.w.sum();
  CHECK(off.scale(loss).id() == loss.id());
  s.backward(off, kInf);
  off.unscale_(s.optimizer);
  CHECK(off.step(s.optimizer));
  off.update();
}

TEST_CASE("GradScaler: calls out of order, float16 gradients and bad options are errors",
          "[nn][amp]") {
  Setup s;
  optim::GradScaler scaler;
  CHECK_THROWS_TEXT(ArgumentError, "GradScaler::update: expected a step() or unscale_() before",
                    scaler.update());
  s.backward(scaler, 1);
  scaler.unscale_(s.optimizer);
  CHECK_THROWS_TEXT(ArgumentError, "unscale_: expected one call", scaler.unscale_(s.optimizer));
  (void)scaler.step(s.optimizer);
  CHECK_THROWS_TEXT(ArgumentError, "step: expected one call", (void)scaler.step(s.optimizer));
  CHECK_THROWS_TEXT(ArgumentError, "after step()", scaler.unscale_(s.optimizer));
  scaler.update();
  // a step that fails can be made again, and divides only once
  s.backward(scaler, 1);
  const std::vector<float> before = s.values();
  scaler.unscale_(s.optimizer);
  const Tensor gradient = s.w.grad();
  s.w.id()->grad = ones({3}, {.device = here()}).impl();
  CHECK_THROWS_TEXT(ShapeError, "expected the gradient of parameter 0",
                    (void)scaler.step(s.optimizer));
  s.w.set_grad(gradient);
  CHECK(scaler.step(s.optimizer));
  CHECK(s.values() == std::vector<float>{before[0] - 0.5F, before[1] - 0.5F});
  scaler.update();
  nn::Parameter half(ones({2}, {.device = here(), .dtype = DType::float16}));
  optim::SGD optimizer(std::vector<Tensor>{half}, {.lr = 1});
  half.sum().backward();
  CHECK_THROWS_TEXT(DTypeError, "expected gradients of float32 or float64, got float16",
                    scaler.unscale_(optimizer));
  CHECK(half.grad().to_vector<float>() == std::vector<float>{1, 1});
  CHECK_THROWS_TEXT(ArgumentError, "init_scale", optim::GradScaler({.init_scale = 0}));
  CHECK_THROWS_TEXT(ArgumentError, "growth_factor", optim::GradScaler({.growth_factor = 1}));
  CHECK_THROWS_TEXT(ArgumentError, "backoff_factor", optim::GradScaler({.backoff_factor = 1}));
  CHECK_THROWS_TEXT(ArgumentError, "growth_interval", optim::GradScaler({.growth_interval = 0}));
  CHECK_THROWS_TEXT(ArgumentError, "new_scale", scaler.update(kInf));
}

TEST_CASE("GradScaler: float16 gradients that would be 0 are not", "[nn][amp]") {
  const auto gradient = [](bool scaled) {
    nn::Parameter w(full({4, 4}, 1e-3, {.device = here()}));
    optim::SGD optimizer(std::vector<Tensor>{w}, {.lr = 1});
    optim::GradScaler scaler({.enabled = scaled});
    const Tensor loss = [&] {
      const Autocast guard(DType::float16);
      return mul(matmul(full({4, 4}, 1e-3, {.device = here()}), w).sum(), 1e-6);
    }();
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    return w.grad()[0][0].item<double>();
  };
  CHECK(gradient(false) == 0);
  CHECK(gradient(true) == Approx(4e-9).epsilon(0.01));
}

}  // namespace braid::test::on_device
