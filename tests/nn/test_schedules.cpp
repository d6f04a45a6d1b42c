// Schedules compared with PyTorch (goldens/schedules.txt), saved and resumed, and their errors.
#include <algorithm>

#include <braid/braid.hpp>
#include <braid/core/internal/body.hpp>

#include "refused.hpp"
#include "support/golden.hpp"
#include "support/on_device.hpp"
#include "support/temporary.hpp"
#include "trees.hpp"

namespace braid::test::on_device {
using braid::testing::Goldens;
using namespace optim;

namespace {

using Numbers = std::vector<double>;

const Goldens& goldens() {
  static const Goldens file("schedules.txt");
  return file;
}

/// Two groups with rates 0.5 and 0.02, as in make_goldens.py.
struct Groups {
  Tensor a = zeros({1}, {.requires_grad = true}), b = zeros({1}, {.requires_grad = true});
  SGD optimizer{{{{a}, {.lr = 0.5, .momentum = 0.9}}, {{b}, {.lr = 0.02, .momentum = 0.9}}}};
  [[nodiscard]] Numbers rates() const { return {optimizer.lr(0), optimizer.lr(1)}; }
};

void check_rates(const Numbers& got, const Numbers& all, std::size_t step) {
  for (std::size_t g = 0; g < 2; ++g) {
    INFO("step " << step << ", group " << g);
    const double want = all.at(2 * step + g);
    CHECK(std::abs(got[g] - want) <= 1e-12 * std::abs(want) + 1e-16);
  }
}

/// Follows the golden rates. At step 17 the state is loaded into a second schedule, which must then
/// produce the same rates.
template <class S, class Options> void check(const std::string& name, const Options& options) {
  INFO(name);
  const Numbers want = goldens().tensor(name + ".lr").to_vector<double>();
  REQUIRE(want.size() == 82);
  Numbers momenta(41, 0.9);
  if (goldens().has(name + ".momentum"))
    momenta = goldens().tensor(name + ".momentum").to_vector<double>();
  Groups first, second;
  S schedule(first.optimizer, options), resumed(second.optimizer, options);
  for (std::size_t step = 0; step <= 40; ++step) {
    if (step > 0) schedule.step();
    CHECK(schedule.steps() == static_cast<std::int64_t>(step));
    CHECK(schedule.lr(1) == first.optimizer.lr(1));
    check_rates(first.rates(), want, step);
    CHECK(std::abs(first.optimizer.momentum() - momenta.at(step)) <= 1e-12);
    if (step == 17) load_state_dict(resumed, copied(state_dict(schedule)));
    if (step > 17) resumed.step();
    if (step >= 17) {
      CHECK(second.rates() == first.rates());
      CHECK(second.optimizer.momentum() == first.optimizer.momentum());
    }
  }
}
template <class Options> void check_of(const std::string& name, const Options& options) {
  check<ScheduleOf<Options>>(name, options);
}

}  // namespace

TEST_CASE("schedules: 40 steps of each agree with PyTorch, resumed ones too",
          "[nn][optim][schedules][goldens]") {
  check_of("step", StepOptions{.step_size = 7, .gamma = 0.3});
  check_of("multistep", MultiStepOptions{.milestones = {3, 9, 9, 30}, .gamma = 0.5});
  check_of("exponential", ExponentialOptions{.gamma = 0.93});
  check_of("cosine", CosineOptions{.steps = 16, .min_lr = 0.01});
  check_of("cosine.zero", CosineOptions{.steps = 40});
  check_of("restarts", CosineWarmRestartsOptions{.steps = 7, .min_lr = 0.001});
  check_of("restarts.longer", CosineWarmRestartsOptions{.steps = 5, .factor = 2, .min_lr = 0.001});
  check_of("linear", LinearOptions{.start_factor = 0.1, .end_factor = 0.9, .steps = 12});
  check_of("constant", ConstantOptions{.factor = 0.25, .steps = 8});
  check_of("polynomial", PolynomialOptions{.steps = 25, .power = 1.7});
  const auto slower = [](std::int64_t t) { return 1 / (1 + 0.1 * static_cast<double>(t)); };
  check_of("lambda", LambdaOptions{.factor = slower});
  OneCycleOptions cycle{.max_lr = 0.7, .steps = 41};
  check<OneCycleSchedule>("onecycle", cycle);
  cycle.base_momentum = 0.8, cycle.max_momentum = 0.9, cycle.three_phase = true;
  check<OneCycleSchedule>("onecycle.three", cycle);
  cycle = {.max_lr = 0.7, .steps = 45, .pct_start = 0.4, .linear = true, .div_factor = 10};
  cycle.final_div_factor = 100;
  check<OneCycleSchedule>("onecycle.linear", cycle);
  const std::vector<Curve> parts{LinearOptions{.start_factor = 0.1, .steps = 5},
                                 CosineOptions{.steps = 20, .min_lr = 0.01},
                                 ExponentialOptions{.gamma = 0.9}};
  check_of("sequential", SequentialOptions{.parts = parts, .milestones = {5, 25}});
  const std::vector<Curve> chain{ConstantOptions{.factor = 0.1, .steps = 6},
                                 ExponentialOptions{.gamma = 0.95}, CosineOptions{.steps = 45},
                                 StepOptions{.step_size = 10, .gamma = 0.5}};
  check<ChainedSchedule>("chained", chain);
}

TEST_CASE("schedules: Plateau agrees with PyTorch over 40 metrics, resumed too",
          "[nn][optim][schedules][goldens]") {
  const Numbers metrics = goldens().tensor("plateau.metrics").to_vector<double>();
  const auto check = [&](const std::string& name, const PlateauOptions& options) {
    INFO(name);
    const Numbers want = goldens().tensor(name + ".lr").to_vector<double>();
    const double sign = options.maximize ? -1 : 1;
    Groups first, second;
    PlateauSchedule schedule(first.optimizer, options), resumed(second.optimizer, options);
    for (std::size_t step = 0; step < metrics.size(); ++step) {
      schedule.step(sign * metrics[step]);
      check_rates(first.rates(), want, step);
      if (step > 20) resumed.step(sign * metrics[step]);
      if (step > 20) CHECK(second.rates() == first.rates());
      if (step != 20) continue;
      // by the base class, as in a program that selects the schedule when it runs
      Schedule &from = schedule, &into = resumed;
      const TemporaryFolder folder;
      training::Checkpoint(folder.path(), from).save();
      CHECK(training::Checkpoint(folder.path(), into).load_latest());
      CHECK(state_dict(resumed).size() == 5);
    }
  };
  check("plateau.default", {});
  check("plateau.short",
        {.factor = 0.5, .patience = 2, .threshold = 0.05, .cooldown = 1, .min_lr = 0.003});
  PlateauOptions options{.factor = 0.5, .patience = 3, .threshold = 0.02, .absolute = true};
  check("plateau.absolute", options);
  check("plateau.max", {.maximize = true, .factor = 0.5, .patience = 1, .threshold = 0.02});
  options.maximize = true, options.factor = 0.7, options.patience = 1, options.cooldown = 2;
  check("plateau.max_absolute", options);
}

TEST_CASE("schedules: OneCycle moves beta1 of Adam, and refuses an optimizer without momentum",
          "[nn][optim][schedules]") {
  const Tensor p = ones({2}, {.requires_grad = true});
  AdamW adam({p}, {});
  OneCycleSchedule schedule(adam, {.max_lr = 0.1, .steps = 11});
  CHECK(adam.options().beta1 == 0.95);
  for (int i = 0; i < 3; ++i) schedule.step();
  CHECK(adam.options().beta1 < 0.9);
  for (int i = 3; i < 11; ++i) schedule.step();
  CHECK_THROWS_TEXT(ArgumentError, "OneCycle: expected at most 11 steps, got 12", schedule.step());
  CHECK(schedule.steps() == 11);
  // beyond its end a line would go below 0
  for (const bool three_phase : {false, true}) {
    OneCycleSchedule line(adam,
                          {.max_lr = 0.1, .steps = 11, .linear = true, .three_phase = three_phase});
    for (int i = 0; i < 11; ++i) line.step();
    CHECK(adam.lr() == Approx(0.1 / 25 / 1e4).epsilon(1e-9));
    CHECK(adam.options().beta1 == Approx(0.95));
  }
  SGD plain({p}, {.lr = 0.3});
  CHECK_THROWS_TEXT(ArgumentError,
                    "SGD: expected an optimizer made with momentum or beta1, got one without",
                    OneCycleSchedule(plain, {.max_lr = 0.1, .steps = 11}));
  CHECK(plain.lr() == 0.3);
  OneCycleSchedule without(plain, {.max_lr = 0.1, .steps = 11, .cycle_momentum = false});
  CHECK(plain.lr() == Approx(0.1 / 25).epsilon(1e-12));
}

TEST_CASE("schedules: options out of range, and a state that does not fit",
          "[nn][optim][schedules][errors]") {
  Groups g;
  const double nan = std::nan("");
  const auto make = [&](const auto& o) {
    ScheduleOf<std::remove_cvref_t<decltype(o)>>(g.optimizer, o);
  };
  refuses<ArgumentError>("")({
      {"Cosine: expected steps >= 1, got 0", [&] { make(CosineOptions{}); }},
      {"Cosine: expected min_lr >= 0, got -1",
       [&] { make(CosineOptions{.steps = 3, .min_lr = -1}); }},
      {"Step: expected step_size >= 1, got 0", [&] { make(StepOptions{.step_size = 0}); }},
      {"Step: expected gamma >= 0, got nan", [&] { make(StepOptions{.gamma = nan}); }},
      {"MultiStep: expected increasing milestones, got 2 after 5",
       [&] { make(MultiStepOptions{.milestones = {5, 2}}); }},
      {"Exponential: expected gamma >= 0, got -1", [&] { make(ExponentialOptions{.gamma = -1}); }},
      {"CosineWarmRestarts: expected factor >= 1, got 0",
       [&] { make(CosineWarmRestartsOptions{.steps = 2, .factor = 0}); }},
      {"Linear: expected steps >= 1, got -1", [&] { make(LinearOptions{.steps = -1}); }},
      {"Constant: expected steps >= 0, got -1", [&] { make(ConstantOptions{.steps = -1}); }},
      {"Polynomial: expected power >= 0, got nan", [&] { make(PolynomialOptions{.power = nan}); }},
      {"Lambda: expected a function, got none", [&] { make(LambdaOptions{}); }},
      {"OneCycle: expected 0 <= pct_start <= 1, got 2",
       [&] { OneCycleSchedule(g.optimizer, {.max_lr = 1, .steps = 9, .pct_start = 2}); }},
      {"Sequential: expected at least one part, got 0", [&] { make(SequentialOptions{}); }},
      {"Sequential: expected one milestone fewer than parts, got 0 for 2 parts",
       [&] {
         make(SequentialOptions{.parts = {LinearOptions{}, LinearOptions{}}, .milestones = {}});
       }},
      {"Chained: expected at least one curve, got 0", [&] { ChainedSchedule(g.optimizer, {}); }},
      {"Plateau: expected 0 <= factor < 1, got 1",
       [&] { PlateauSchedule(g.optimizer, {.factor = 1}); }},
      {"Plateau: expected patience >= 0, got -1",
       [&] { PlateauSchedule(g.optimizer, {.patience = -1}); }},
  });
  CHECK(g.rates() == Numbers{0.5, 0.02});  // the failed calls set nothing
  LambdaSchedule broken(g.optimizer,
                        {.factor = [](std::int64_t t) { return t == 2 ? -1.0 : 0.5; }});
  broken.step();
  CHECK_THROWS_TEXT(ArgumentError, "schedule: expected learning rates >= 0, got -0.5 at step 2",
                    broken.step());
  CHECK(g.rates() == Numbers{0.25, 0.01});
  CHECK(broken.steps() == 1);
  CHECK_THROWS_AS(load_state_dict(broken, StateDict{{"lr", ones({2})}}), ArgumentError);
  PlateauSchedule plateau(g.optimizer, {});
  const StateDict good = copied(state_dict(plateau));
  const auto load = [&](const char* name, double value) {
    return [&plateau, &good, name, value] {
      StateDict bad = copied(good);
      // the other entries differ too, so that a part of a load would be seen
      for (const auto& [key, t] : bad) t.fill_(3);
      if (bad.contains(name)) bad.at(name).fill_(value);
      if (value == 7) bad.erase(name);
      load_state_dict(plateau, bad);
    };
  };
  const double inf = std::numeric_limits<double>::infinity();
  refuses<ArgumentError>("load_state_dict: expected ")({
      {"lr of PlateauSchedule to be finite numbers >= 0, got nan", load("lr", nan)},
      {"lr of PlateauSchedule to be finite numbers >= 0, got inf", load("lr", inf)},
      {"base_lr of PlateauSchedule to be finite numbers >= 0, got -1", load("base_lr", -1)},
      {"steps of PlateauSchedule to be counts >= 0, got -1", load("steps", -1)},
      {"counts of PlateauSchedule to be counts >= 0, got -2", load("counts", -2)},
      {"best of PlateauSchedule to be a number, got nan", load("best", nan)},
      {"the 5 keys of PlateauSchedule, got 1 missing*counts", load("counts", 7)},
  });
  for (const auto& [name, t] : state_dict(plateau)) CHECK_SAME_BITS(t, good.at(name));
  CHECK(g.rates() == Numbers{0.25, 0.01});
  CHECK_THROWS_TEXT(IndexError, "schedule: lr: expected a group below 2, got 2", broken.lr(2));
}

TEST_CASE("Average: decay, warm-up and equal weights by plain loops; swapped in and out; saved",
          "[nn][optim][average]") {
  for (int kind = 0; kind < 3; ++kind)
    for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16}) {
      INFO("kind " << kind << " " << dtype);
      const AverageOptions options{.decay = 0.8, .warm_up = kind == 1, .equal = kind == 2};
      nn::Linear model(3, 2, {.device = here(), .dtype = dtype});
      Average average(model, options);
      CHECK_THROWS_TEXT(ArgumentError, "Average: swap_in: expected at least one update, got 0",
                        average.swap_in());
      Numbers want;
      for (int n = 0; n < 6; ++n) {
        {
          const NoGrad guard;
          model.weight.copy_(random_tensor({2, 3}, dtype, {}, static_cast<std::uint64_t>(n) + 1));
        }
        average.update();
        const Numbers now = model.weight.to_vector<double>();
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
      const Numbers got = average.averages()[0].to_vector<double>();
      for (std::size_t i = 0; i < want.size(); ++i)
        CHECK(std::abs(got[i] - want[i]) <= tolerance * 4);
      CHECK(average.averages()[0].dtype() == (dtype == DType::bfloat16 ? DType::float32 : dtype));
      const Tensor own = model.weight.detach().clone();
      {
        const Averaged guard(average);
        CHECK_SAME_BITS(model.weight.detach(), average.averages()[0].to(dtype).detach());
        CHECK_THROWS_TEXT(ArgumentError, "swap_out first", average.update());
        CHECK_THROWS_AS(average.swap_in(), ArgumentError);
      }
      CHECK_SAME_BITS(model.weight.detach(), own);
      CHECK_THROWS_AS(average.swap_out(), ArgumentError);
      Average loaded(model, options);
      load_state_dict(loaded, state_dict(average));
      CHECK(loaded.updates() == 6);
      CHECK_SAME_BITS(loaded.averages()[1].detach(), average.averages()[1].detach());
    }
  const auto refused = [](const Tensor& t, const AverageOptions& o = {}) { Average({t}, o); };
  refuses<ArgumentError>("Average: expected ")({
      {"0 <= decay <= 1, got 2", [&] { refused(ones({1}), {.decay = 2}); }},
      {"at least one parameter, got 0", [] { Average(std::vector<Tensor>{}); }},
      {"defined parameters, got an undefined one at position 0", [&] { refused({}); }},
  });
  CHECK_THROWS_TEXT(DTypeError,
                    "Average: expected floating point parameters, got int64 at position 0",
                    refused(ones({1}, {.dtype = DType::int64})));
}

TEST_CASE("Average: update checks every parameter before it moves an average",
          "[nn][optim][average]") {
  const Tensor first = ones({2}, {.device = here()}), second = ones({3}, {.device = here()});
  Average average(std::vector<Tensor>{first, second});
  average.update();
  braid::detail::replace_body(first, full({2}, 5.0, {.device = there()}));
  braid::detail::replace_body(second, ones({4}, {.device = here()}));
  CHECK_THROWS_TEXT(ShapeError, "Average: update: expected parameter 1 of shape [3], got [4]",
                    average.update());
  CHECK(average.averages()[0].device() == here());
  CHECK(average.updates() == 1);
  braid::detail::replace_body(second, full({3}, 5.0, {.device = here()}));
  average.update();
  CHECK(average.averages()[0].device() == there());
  CHECK(average.updates() == 2);
}

}  // namespace braid::test::on_device
