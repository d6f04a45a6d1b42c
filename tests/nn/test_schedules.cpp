// Schedules against PyTorch (goldens/schedules.txt), saved and resumed, and what they refuse.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <braid/braid.hpp>

#include "support/errors.hpp"
#include "support/golden.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
using braid::testing::Goldens;

namespace {

/// Two groups with rates 0.5 and 0.02, as make_goldens.py has them.
struct Groups {
  Tensor a = zeros({1}, {.requires_grad = true}), b = zeros({1}, {.requires_grad = true});
  optim::SGD optimizer;
  explicit Groups(double momentum = 0.9)
      : optimizer({{{a}, {.lr = 0.5, .momentum = momentum}},
                   {{b}, {.lr = 0.02, .momentum = momentum}}}) {}
  [[nodiscard]] std::vector<double> rates() const { return {optimizer.lr(0), optimizer.lr(1)}; }
};

void check_rates(const std::vector<double>& got, const std::vector<double>& all, std::size_t step) {
  for (std::size_t g = 0; g < 2; ++g) {
    INFO("step " << step << ", group " << g);
    const double want = all.at(2 * step + g);
    CHECK(std::abs(got[g] - want) <= 1e-12 * std::abs(want) + 1e-16);
  }
}

/// Follows the golden, and at step 17 goes on with a fresh schedule that was given the state.
template <class Make>
void check_schedule(const Goldens& goldens, const std::string& name, const Make& make) {
  INFO(name);
  const std::vector<double> want = goldens.tensor(name + ".lr").to_vector<double>();
  REQUIRE(want.size() == 82);
  const bool cycle = goldens.has(name + ".momentum");
  const std::vector<double> momenta =
      cycle ? goldens.tensor(name + ".momentum").to_vector<double>() : std::vector<double>(41, 0.9);
  Groups first, second;
  auto schedule = make(first.optimizer);
  auto resumed = make(second.optimizer);
  for (std::size_t step = 0; step <= 40; ++step) {
    if (step > 0) schedule->step();
    CHECK(schedule->steps() == static_cast<std::int64_t>(step));
    CHECK(schedule->lr(1) == first.optimizer.lr(1));
    check_rates(first.rates(), want, step);
    CHECK(std::abs(first.optimizer.momentum() - momenta.at(step)) <= 1e-12);
    if (step == 17) {
      StateDict saved;
      for (const auto& [key, t] : state_dict(*schedule)) saved.set(key, t.clone());
      load_state_dict(*resumed, saved);
    }
    if (step > 17) resumed->step();
    if (step >= 17) {
      CHECK(second.rates() == first.rates());
      CHECK(second.optimizer.momentum() == first.optimizer.momentum());
    }
  }
}

template <class S, class Options> auto maker(const Options& options) {
  return [options](optim::Optimizer& optimizer) { return std::make_unique<S>(optimizer, options); };
}

}  // namespace

TEST_CASE("schedules: 40 steps of each agree with PyTorch, resumed ones too",
          "[nn][optim][schedules][goldens]") {
  using namespace optim;
  const Goldens goldens("schedules.txt");
  check_schedule(goldens, "step", maker<StepSchedule>(StepOptions{.step_size = 7, .gamma = 0.3}));
  check_schedule(
      goldens, "multistep",
      maker<MultiStepSchedule>(MultiStepOptions{.milestones = {3, 9, 9, 30}, .gamma = 0.5}));
  check_schedule(goldens, "exponential",
                 maker<ExponentialSchedule>(ExponentialOptions{.gamma = 0.93}));
  check_schedule(goldens, "cosine",
                 maker<CosineSchedule>(CosineOptions{.steps = 16, .min_lr = 0.01}));
  check_schedule(goldens, "cosine.zero", maker<CosineSchedule>(CosineOptions{.steps = 40}));
  check_schedule(
      goldens, "restarts",
      maker<CosineWarmRestartsSchedule>(CosineWarmRestartsOptions{.steps = 7, .min_lr = 0.001}));
  check_schedule(goldens, "restarts.longer",
                 maker<CosineWarmRestartsSchedule>(
                     CosineWarmRestartsOptions{.steps = 5, .factor = 2, .min_lr = 0.001}));
  check_schedule(
      goldens, "linear",
      maker<LinearSchedule>(LinearOptions{.start_factor = 0.1, .end_factor = 0.9, .steps = 12}));
  check_schedule(goldens, "constant",
                 maker<ConstantSchedule>(ConstantOptions{.factor = 0.25, .steps = 8}));
  check_schedule(goldens, "polynomial",
                 maker<PolynomialSchedule>(PolynomialOptions{.steps = 25, .power = 1.7}));
  check_schedule(goldens, "lambda",
                 maker<LambdaSchedule>(LambdaOptions{.factor = [](std::int64_t t) {
                   return 1 / (1 + 0.1 * static_cast<double>(t));
                 }}));
  check_schedule(goldens, "onecycle",
                 maker<OneCycleSchedule>(OneCycleOptions{.max_lr = 0.7, .steps = 41}));
  check_schedule(goldens, "onecycle.linear",
                 maker<OneCycleSchedule>(OneCycleOptions{.max_lr = 0.7,
                                                         .steps = 45,
                                                         .pct_start = 0.4,
                                                         .linear = true,
                                                         .div_factor = 10,
                                                         .final_div_factor = 100}));
  check_schedule(goldens, "onecycle.three",
                 maker<OneCycleSchedule>(OneCycleOptions{.max_lr = 0.7,
                                                         .steps = 41,
                                                         .base_momentum = 0.8,
                                                         .max_momentum = 0.9,
                                                         .three_phase = true}));
  check_schedule(
      goldens, "sequential",
      maker<SequentialSchedule>(SequentialOptions{
          .parts = {LinearOptions{.start_factor = 0.1, .steps = 5},
                    CosineOptions{.steps = 20, .min_lr = 0.01}, ExponentialOptions{.gamma = 0.9}},
          .milestones = {5, 25}}));
  check_schedule(goldens, "chained",
                 maker<ChainedSchedule>(std::vector<Curve>{
                     ConstantOptions{.factor = 0.1, .steps = 6}, ExponentialOptions{.gamma = 0.95},
                     CosineOptions{.steps = 45}, StepOptions{.step_size = 10, .gamma = 0.5}}));
}

TEST_CASE("schedules: Plateau agrees with PyTorch over 40 metrics, resumed too",
          "[nn][optim][schedules][goldens]") {
  const Goldens goldens("schedules.txt");
  const std::vector<double> metrics = goldens.tensor("plateau.metrics").to_vector<double>();
  const auto check = [&](const std::string& name, double sign,
                         const optim::PlateauOptions& options) {
    INFO(name);
    const std::vector<double> want = goldens.tensor(name + ".lr").to_vector<double>();
    Groups first, second;
    optim::PlateauSchedule schedule(first.optimizer, options), resumed(second.optimizer, options);
    for (std::size_t step = 0; step < metrics.size(); ++step) {
      schedule.step(sign * metrics[step]);
      check_rates(first.rates(), want, step);
      if (step > 20) resumed.step(sign * metrics[step]);
      if (step > 20) CHECK(second.rates() == first.rates());
      if (step == 20) load_state_dict(resumed, state_dict(schedule));
    }
  };
  check("plateau.default", 1, {});
  check("plateau.short", 1,
        {.factor = 0.5, .patience = 2, .threshold = 0.05, .cooldown = 1, .min_lr = 0.003});
  check("plateau.absolute", 1, {.factor = 0.5, .patience = 3, .threshold = 0.02, .absolute = true});
  check("plateau.max", -1, {.maximize = true, .factor = 0.5, .patience = 1, .threshold = 0.02});
  check("plateau.max_absolute", -1,
        {.maximize = true,
         .factor = 0.7,
         .patience = 1,
         .threshold = 0.02,
         .absolute = true,
         .cooldown = 2});
}

TEST_CASE("schedules: OneCycle moves beta1 of Adam, and refuses an optimizer without momentum",
          "[nn][optim][schedules]") {
  const Tensor p = ones({2}, {.requires_grad = true});
  optim::AdamW adam({p}, {});
  optim::OneCycleSchedule schedule(adam, {.max_lr = 0.1, .steps = 11});
  CHECK(adam.options().beta1 == 0.95);
  for (int i = 0; i < 3; ++i) schedule.step();
  CHECK(adam.options().beta1 < 0.9);
  for (int i = 3; i < 11; ++i) schedule.step();
  CHECK_THROWS_TEXT(ArgumentError, "OneCycle: expected at most 11 steps, got 12", schedule.step());
  CHECK(schedule.steps() == 11);
  optim::SGD plain({p}, {.lr = 0.3});
  CHECK_THROWS_TEXT(ArgumentError,
                    "SGD: expected an optimizer made with momentum or beta1, got one without",
                    optim::OneCycleSchedule(plain, {.max_lr = 0.1, .steps = 11}));
  CHECK(plain.lr() == 0.3);
  optim::OneCycleSchedule without(plain, {.max_lr = 0.1, .steps = 11, .cycle_momentum = false});
  CHECK(plain.lr() == Approx(0.1 / 25).epsilon(1e-12));
}

TEST_CASE("schedules: options out of range, and a state that does not fit",
          "[nn][optim][schedules][errors]") {
  using namespace optim;
  Groups g;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_TEXT(ArgumentError, "Cosine: expected steps >= 1, got 0",
                    CosineSchedule(g.optimizer, {}));
  CHECK_THROWS_TEXT(ArgumentError, "Cosine: expected min_lr >= 0, got -1",
                    CosineSchedule(g.optimizer, {.steps = 3, .min_lr = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "Step: expected step_size >= 1, got 0",
                    StepSchedule(g.optimizer, {.step_size = 0}));
  CHECK_THROWS_TEXT(ArgumentError, "Step: expected gamma >= 0, got nan",
                    StepSchedule(g.optimizer, {.gamma = nan}));
  CHECK_THROWS_TEXT(ArgumentError, "MultiStep: expected increasing milestones, got 2 after 5",
                    MultiStepSchedule(g.optimizer, {.milestones = {5, 2}}));
  CHECK_THROWS_TEXT(ArgumentError, "Exponential: expected gamma >= 0, got -1",
                    ExponentialSchedule(g.optimizer, {.gamma = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "CosineWarmRestarts: expected factor >= 1, got 0",
                    CosineWarmRestartsSchedule(g.optimizer, {.steps = 2, .factor = 0}));
  CHECK_THROWS_TEXT(ArgumentError, "Linear: expected steps >= 1, got -1",
                    LinearSchedule(g.optimizer, {.steps = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "Constant: expected steps >= 0, got -1",
                    ConstantSchedule(g.optimizer, {.steps = -1}));
  CHECK_THROWS_TEXT(ArgumentError, "Polynomial: expected power >= 0, got nan",
                    PolynomialSchedule(g.optimizer, {.power = nan}));
  CHECK_THROWS_TEXT(ArgumentError, "Lambda: expected a function, got none",
                    LambdaSchedule(g.optimizer, {}));
  CHECK_THROWS_TEXT(ArgumentError, "OneCycle: expected 0 <= pct_start <= 1, got 2",
                    OneCycleSchedule(g.optimizer, {.max_lr = 1, .steps = 9, .pct_start = 2}));
  CHECK_THROWS_TEXT(ArgumentError, "Sequential: expected at least one part, got 0",
                    SequentialSchedule(g.optimizer, {}));
  CHECK_THROWS_TEXT(
      ArgumentError, "Sequential: expected one milestone fewer than parts, got 0 for 2 parts",
      SequentialSchedule(g.optimizer,
                         {.parts = {LinearOptions{}, LinearOptions{}}, .milestones = {}}));
  CHECK_THROWS_TEXT(ArgumentError, "Chained: expected at least one curve, got 0",
                    ChainedSchedule(g.optimizer, {}));
  CHECK_THROWS_TEXT(ArgumentError, "Plateau: expected 0 <= factor < 1, got 1",
                    PlateauSchedule(g.optimizer, {.factor = 1}));
  CHECK_THROWS_TEXT(ArgumentError, "Plateau: expected patience >= 0, got -1",
                    PlateauSchedule(g.optimizer, {.patience = -1}));
  CHECK(g.rates() == std::vector<double>{0.5, 0.02});  // nothing was set
  LambdaSchedule broken(g.optimizer,
                        {.factor = [](std::int64_t t) { return t == 2 ? -1.0 : 0.5; }});
  broken.step();
  CHECK_THROWS_TEXT(ArgumentError, "schedule: expected learning rates >= 0, got -0.5 at step 2",
                    broken.step());
  CHECK(g.rates() == std::vector<double>{0.25, 0.01});
  CHECK(broken.steps() == 1);
  CHECK_THROWS_AS(load_state_dict(broken, StateDict{{"lr", ones({2})}}), ArgumentError);
  CHECK_THROWS_TEXT(IndexError, "schedule: lr: expected a group below 2, got 2", broken.lr(2));
}

TEST_CASE("Average: decay, warm-up and equal weights by plain loops; swapped in and out; saved",
          "[nn][optim][average]") {
  for (int kind = 0; kind < 3; ++kind)
    for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16}) {
      INFO("kind " << kind << " " << dtype);
      const optim::AverageOptions options{.decay = 0.8, .warm_up = kind == 1, .equal = kind == 2};
      nn::Linear model(3, 2, {.device = here(), .dtype = dtype});
      optim::Average average(model, options);
      CHECK_THROWS_TEXT(ArgumentError, "Average: swap_in: expected at least one update, got 0",
                        average.swap_in());
      std::vector<double> want;
      for (int n = 0; n < 6; ++n) {
        {
          const NoGrad guard;
          model.weight.copy_(random_tensor({2, 3}, dtype, {}, static_cast<std::uint64_t>(n) + 1));
        }
        average.update();
        const std::vector<double> now = model.weight.to_vector<double>();
        const double decay = n == 0      ? 0
                             : kind == 0 ? 0.8
                             : kind == 1 ? std::min(0.8, (1.0 + n) / (10.0 + n))
                                         : n / (n + 1.0);
        if (n == 0) want = now;
        for (std::size_t i = 0; i < want.size(); ++i)
          want[i] = decay * want[i] + (1 - decay) * now[i];
      }
      CHECK(average.updates() == 6);
      const double tolerance = dtype == DType::float64 ? 1e-14 : 1e-6;
      const std::vector<double> got = average.averages()[0].to_vector<double>();
      for (std::size_t i = 0; i < want.size(); ++i)
        CHECK(std::abs(got[i] - want[i]) <= tolerance * 4);
      CHECK(average.averages()[0].dtype() == (dtype == DType::bfloat16 ? DType::float32 : dtype));
      const Tensor own = model.weight.detach().clone();
      {
        const optim::Averaged guard(average);
        CHECK_SAME_BITS(model.weight.detach(), average.averages()[0].to(dtype).detach());
        CHECK_THROWS_TEXT(ArgumentError, "swap_out first", average.update());
        CHECK_THROWS_AS(average.swap_in(), ArgumentError);
      }
      CHECK_SAME_BITS(model.weight.detach(), own);
      CHECK_THROWS_AS(average.swap_out(), ArgumentError);
      optim::Average loaded(model, options);
      load_state_dict(loaded, state_dict(average));
      CHECK(loaded.updates() == 6);
      CHECK_SAME_BITS(loaded.averages()[1].detach(), average.averages()[1].detach());
    }
  CHECK_THROWS_TEXT(ArgumentError, "Average: expected 0 <= decay <= 1, got 2",
                    optim::Average(std::vector<Tensor>{ones({1})}, {.decay = 2}));
  CHECK_THROWS_TEXT(ArgumentError, "Average: expected at least one parameter, got 0",
                    optim::Average(std::vector<Tensor>{}));
  CHECK_THROWS_TEXT(ArgumentError,
                    "Average: expected defined parameters, got an undefined one at position 0",
                    optim::Average(std::vector<Tensor>{Tensor()}));
  CHECK_THROWS_TEXT(DTypeError,
                    "Average: expected floating point parameters, got int64 at position 0",
                    optim::Average(std::vector<Tensor>{ones({1}, {.dtype = DType::int64})}));
}

}  // namespace braid::test::on_device
