// Initial values of parameters: bounds and moments by PyTorch's formulas, orthogonality, the same
// bits on every device.
#include <braid/braid.hpp>

#include "moments.hpp"
#include "refused.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace init = nn::init;

namespace {

/// Allows five standard errors of the mean, and of the standard deviation of a distribution with at
/// most the kurtosis of a normal distribution.
void check_moments(const Moments& m, double mean, double deviation) {
  CHECK(std::abs(m.mean - mean) <= 5 * deviation / std::sqrt(m.n));
  CHECK(std::abs(m.deviation - deviation) <= 5 * deviation / std::sqrt(2 * m.n));
}
void check_uniform(const Tensor& t, double low, double high) {
  const Moments m = moments(t);
  check_moments(m, (low + high) / 2, (high - low) / std::sqrt(12.0));
  CHECK(m.low >= low);
  CHECK(m.high <= high);
  CHECK(m.low < low + (high - low) * 30 / m.n);  // the numbers cover the whole range
  CHECK(m.high > high - (high - low) * 30 / m.n);
}
Tensor weight(const Shape& shape) { return on_device::empty(shape, {.requires_grad = true}); }

}  // namespace

TEST_CASE("init: constants and identities", "[nn][init]") {
  const Tensor t = weight({2, 3});
  CHECK(init::constant_(t, 2.5).id() == t.id());
  CHECK(t.to_vector<double>() == std::vector<double>(6, 2.5));
  CHECK(t.is_leaf());
  CHECK(t.requires_grad());
  CHECK(init::zeros_(t).to_vector<double>() == std::vector<double>(6, 0));
  CHECK(init::ones_(t).to_vector<double>() == std::vector<double>(6, 1));
  CHECK(init::eye_(t).to_vector<double>() == std::vector<double>{1, 0, 0, 0, 1, 0});
  CHECK(init::eye_(weight({3, 1})).to_vector<double>() == std::vector<double>{1, 0, 0});
}

TEST_CASE("init: bounds and deviations are those of the formulas", "[nn][init]") {
  manual_seed(5);
  const std::int64_t n = cut(200, 60);
  check_uniform(init::uniform_(weight({n, n}), -0.5, 2), -0.5, 2);
  check_moments(moments(init::normal_(weight({n, n}), 3, 0.5)), 3, 0.5);
  const double in = 40 * 9, out = static_cast<double>(n) * 9;  // a convolution's fans
  const auto conv = [n] { return weight({n, 40, 3, 3}); };
  CHECK(init::fan_in_and_out(conv()) == std::pair<std::int64_t, std::int64_t>(40 * 9, n * 9));
  double bound = 1.5 * std::sqrt(6 / (in + out));
  check_uniform(init::xavier_uniform_(conv(), 1.5), -bound, bound);
  check_moments(moments(init::xavier_normal_(conv(), 1.5)), 0, 1.5 * std::sqrt(2 / (in + out)));
  bound = std::sqrt(2 / (1 + 0.25)) * std::sqrt(3 / in);
  check_uniform(init::kaiming_uniform_(conv(), {.a = 0.5}), -bound, bound);
  bound = std::sqrt(2.0) * std::sqrt(3 / in);  // the default: a = 0
  check_uniform(init::kaiming_uniform_(conv()), -bound, bound);
  check_moments(moments(init::kaiming_normal_(
                    conv(), {.mode = init::Fan::out, .nonlinearity = init::Nonlinearity::relu})),
                0, std::sqrt(2 / out));
  check_moments(moments(init::kaiming_normal_(conv(), {.nonlinearity = init::Nonlinearity::tanh})),
                0, 5.0 / 3 / std::sqrt(in));
  using init::Nonlinearity;
  CHECK(init::calculate_gain(Nonlinearity::linear) == 1);
  CHECK(init::calculate_gain(Nonlinearity::sigmoid) == 1);
  CHECK(init::calculate_gain(Nonlinearity::selu) == 0.75);
  CHECK(init::calculate_gain(Nonlinearity::leaky_relu) == std::sqrt(2 / (1 + 0.0001)));
}

TEST_CASE(
    "init: truncated normal numbers lie inside, with the moments of the truncated distribution",
    "[nn][init]") {
  manual_seed(6);
  const std::int64_t n = cut(200, 60);
  const auto density = [](double x) {
    return std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846);
  };
  const auto below = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  for (const auto& [mean, deviation, low, high] : std::vector<std::array<double, 4>>{
           {0, 1, -2, 2}, {1, 0.5, 0.5, 3}, {0, 0.02, -2, 2}, {0, 1, 1, 1.5}}) {
    INFO(mean << " " << deviation << " " << low << " " << high);
    const Moments m = moments(init::trunc_normal_(weight({n, n}), mean, deviation, low, high));
    CHECK(m.low >= low);
    CHECK(m.high <= high);
    const double a = (low - mean) / deviation, b = (high - mean) / deviation,
                 z = below(b) - below(a), shift = (density(a) - density(b)) / z;
    const double variance = 1 + (a * density(a) - b * density(b)) / z - shift * shift;
    check_moments(m, mean + deviation * shift, deviation * std::sqrt(variance));
  }
  // Half of the numbers lie between the quartiles of the normal distribution.
  const Tensor x = init::trunc_normal_(weight({n, n}), 0, 1, -9, 9).detach();
  const double within = lt(abs(x), 0.6744897501960817).to(DType::float64).mean().item<double>();
  CHECK(std::abs(within - 0.5) < 2.5 / std::sqrt(static_cast<double>(x.numel())));
}

TEST_CASE("init: orthogonal matrices are orthogonal, of any shape", "[nn][init]") {
  manual_seed(7);
  for (const Shape& shape :
       {Shape{1, 1}, Shape{4, 9}, Shape{9, 4}, Shape{33, 33}, Shape{6, 2, 3, 5}, Shape{64, 3, 2}})
    for (const DType dtype : {DType::float64, DType::float32}) {
      INFO(shape << " " << dtype);
      const Tensor t = init::orthogonal_(on_device::empty(shape, {.dtype = dtype}), 1.5)
                           .flatten(1)
                           .to(DType::float64);
      const Tensor gram = t.size(0) <= t.size(1) ? matmul(t, t.t()) : matmul(t.t(), t);
      CHECK_CLOSE(gram, eye(gram.size(0), {.dtype = DType::float64}) * 2.25,
                  (Tolerance{0, dtype == DType::float64 ? 1e-13 : 1e-6}));
    }
  // The distribution is uniform: over many 2 × 2 matrices the last element is as often positive as
  // negative.
  int positive = 0;
  const int draws = static_cast<int>(cut(400, 60));
  for (int i = 0; i < draws; ++i)
    positive += init::orthogonal_(zeros({2, 2})).to_vector<double>()[3] > 0;
  CHECK(std::abs(positive - draws / 2.0) < 3 * std::sqrt(draws));
}

TEST_CASE("init: sparse columns have their zeros", "[nn][init]") {
  manual_seed(8);
  const Tensor t = init::sparse_(weight({10, 7}), 0.25, 2);
  const Tensor none = eq(t.detach(), 0);
  CHECK(none.sum({0}).to_vector<int>() == std::vector<int>(7, 3));
  CHECK_FALSE(equal(none, none.slice(1, 0, 1).expand({10, 7})));
}

TEST_CASE("init: the seed decides, on every device alike", "[nn][init]") {
  const std::vector<std::function<void(const Tensor&)>> all{
      [](const Tensor& t) { init::uniform_(t); },
      [](const Tensor& t) { init::normal_(t); },
      [](const Tensor& t) { init::trunc_normal_(t); },
      [](const Tensor& t) { init::xavier_normal_(t); },
      [](const Tensor& t) { init::kaiming_uniform_(t); },
      [](const Tensor& t) { init::orthogonal_(t); },
      [](const Tensor& t) { init::sparse_(t, 0.3); }};
  for (const auto& f : all) {
    std::vector<Tensor> made;
    for (const Device device : {here(), there(), Device()}) {
      manual_seed(11);
      made.push_back(empty({5, 4}, {.device = device}));
      f(made.back());
    }
    CHECK_SAME_BITS(made[1].to(here()), made[0]);
    CHECK_SAME_BITS(made[2].to(here()), made[0]);
    f(made[2]);
    CHECK(made[2].to_vector<double>() != made[0].to_vector<double>());
  }
}

TEST_CASE("init: what is refused, with nothing written", "[nn][init][errors]") {
  const Tensor t = full({2, 2}, 7.0), vector = ones({3}),
               integers = ones({2, 2}, {.dtype = DType::int64});
  const double nan = std::nan("");
  refuses<DTypeError>("")({
      {"uniform_: expected a floating point tensor, got int64", [&] { init::uniform_(integers); }},
      {"orthogonal_: expected a floating point tensor, got int64",
       [&] { init::orthogonal_(integers); }},
      {"constant_: expected a floating point tensor, got int64",
       [&] { init::constant_(integers, 1); }},
  });
  refuses<ArgumentError>("")({
      {"uniform_: expected low <= high, got 2 and 1", [&] { init::uniform_(t, 2, 1); }},
      {"normal_: expected std >= 0, got -1", [&] { init::normal_(t, 0, -1); }},
      {"normal_: expected a finite mean, got nan", [&] { init::normal_(t, nan); }},
      {"trunc_normal_: expected std > 0, got 0", [&] { init::trunc_normal_(t, 0, 0); }},
      {"trunc_normal_: expected low < high, got 1 and 1",
       [&] { init::trunc_normal_(t, 0, 1, 1, 1); }},
      {"xavier_normal_: expected gain >= 0, got -1", [&] { init::xavier_normal_(t, -1); }},
      {"kaiming_uniform_: expected a finite a, got nan",
       [&] { init::kaiming_uniform_(t, {.a = nan}); }},
      {"orthogonal_: expected a finite gain, got nan", [&] { init::orthogonal_(t, nan); }},
      {"sparse_: expected 0 <= sparsity <= 1, got 1.5", [&] { init::sparse_(t, 1.5); }},
  });
  refuses<ShapeError>("")({
      {"eye_: expected 2 dimensions, got [3]", [&] { init::eye_(vector); }},
      {"eye_: expected 2 dimensions, got [1, 2, 2]", [&] { init::eye_(ones({1, 2, 2})); }},
      {"xavier_uniform_: expected at least 2 dimensions, got [3]",
       [&] { init::xavier_uniform_(vector); }},
      {"kaiming_normal_: expected at least 2 dimensions, got [3]",
       [&] { init::kaiming_normal_(vector); }},
      {"orthogonal_: expected at least 2 dimensions, got [3]", [&] { init::orthogonal_(vector); }},
      {"fan_in_and_out: expected at least 2 dimensions, got [3]",
       [&] { return init::fan_in_and_out(vector); }},
  });
  CHECK(t.to_vector<double>() == std::vector<double>(4, 7));
}

}  // namespace braid::test::on_device
