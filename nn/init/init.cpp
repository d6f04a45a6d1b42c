#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/random.hpp>
#include <braid/nn/init.hpp>

namespace braid::nn::init {
namespace {

void check(const char* name, const Tensor& t) {
  if (!is_floating(t.dtype()))
    throw DTypeError(str(name, ": expected a floating point tensor, got ", t.dtype()));
}
void check_matrix(const char* name, const Tensor& t, bool more) {
  check(name, t);
  if (t.dim() < 2 || (!more && t.dim() != 2))
    throw ShapeError(
        str(name, ": expected ", more ? "at least " : "", "2 dimensions, got ", t.shape()));
}
void check_finite(const char* name, const char* what, double value) {
  if (!std::isfinite(value))
    throw ArgumentError(str(name, ": expected a finite ", what, ", got ", value));
}
void check_at_least_0(const char* name, const char* what, double value) {
  if (!(value >= 0 && std::isfinite(value)))
    throw ArgumentError(str(name, ": expected ", what, " >= 0, got ", value));
}

/// Copies the numbers into t, converted to its device and dtype.
const Tensor& write(const Tensor& t, const Tensor& numbers) {
  const NoGrad guard;
  t.copy_(numbers);
  return t;
}
FactoryOptions like(const Tensor& t) { return {.device = t.device(), .dtype = t.dtype()}; }

const Tensor& write_uniform(const Tensor& t, double low, double high) {
  return write(t, uniform(t.shape(), low, high, like(t)));
}
const Tensor& write_normal(const Tensor& t, double mean, double std) {
  return write(t, add(mul(randn(t.shape(), like(t)), std), mean));
}

/// Returns x with P(normal < x) = p, for 0 < p < 1. Starts from an approximation and refines it by
/// Halley's method, which triples the number of correct digits in each step.
double normal_quantile(double p) {
  if (p > 0.5) return -normal_quantile(1 - p);  // avoids cancellation for p near 1
  // Initial value: in the tail log P(x) ≈ -x² / 2, elsewhere the logistic approximation.
  double x = p < 0.02 ? -std::sqrt(-2 * std::log(p)) : std::log(p / (1 - p)) / 1.702;
  for (int i = 0; i < 8; ++i) {
    const double error = 0.5 * std::erfc(-x / std::numbers::sqrt2) - p,
                 density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi),
                 u = error / density;
    const double step = u / (1 + x * u / 2);
    x -= step;
    if (std::abs(step) <= 1e-15 * std::abs(x)) break;
  }
  return x;
}
double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

struct Fans {
  double in, out;
};
Fans fans(const char* name, const Tensor& t) {
  check_matrix(name, t, true);
  const auto [in, out] = fan_in_and_out(t);
  return {static_cast<double>(in), static_cast<double>(out)};
}

double kaiming_deviation(const char* name, const Tensor& t, const KaimingOptions& o) {
  check_finite(name, "a", o.a);
  const Fans f = fans(name, t);
  return calculate_gain(o.nonlinearity, o.a) / std::sqrt(o.mode == Fan::in ? f.in : f.out);
}

/// Orthonormalises the columns of a matrix [length, count], count <= length, stored column by
/// column, by the Gram-Schmidt process in column order. Each column is processed twice: once leaves
/// an error that grows with the condition number, twice leaves only rounding errors.
void orthogonalise(std::vector<double>& columns, std::size_t length, std::size_t count) {
  for (std::size_t c = 0; c < count; ++c) {
    double* const column = columns.data() + c * length;
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t other = 0; other < c; ++other) {
        const double* const done = columns.data() + other * length;
        double dot = 0;
        for (std::size_t i = 0; i < length; ++i) dot += column[i] * done[i];
        for (std::size_t i = 0; i < length; ++i) column[i] -= dot * done[i];
      }
    double square = 0;
    for (std::size_t i = 0; i < length; ++i) square += column[i] * column[i];
    for (std::size_t i = 0; i < length; ++i) column[i] /= std::sqrt(square);
  }
}

}  // namespace

const Tensor& uniform_(const Tensor& t, double low, double high) {
  check("uniform_", t);
  if (!(low <= high) || !std::isfinite(high - low))
    throw ArgumentError(str("uniform_: expected low <= high, got ", low, " and ", high));
  return write_uniform(t, low, high);
}

const Tensor& normal_(const Tensor& t, double mean, double std) {
  check("normal_", t);
  check_finite("normal_", "mean", mean);
  check_at_least_0("normal_", "std", std);
  return write_normal(t, mean, std);
}

const Tensor& trunc_normal_(const Tensor& t, double mean, double std, double low, double high) {
  check("trunc_normal_", t);
  check_finite("trunc_normal_", "mean", mean);
  if (!(std > 0 && std::isfinite(std)))
    throw ArgumentError(str("trunc_normal_: expected std > 0, got ", std));
  if (!(low < high))
    throw ArgumentError(str("trunc_normal_: expected low < high, got ", low, " and ", high));
  const double first = normal_below((low - mean) / std), last = normal_below((high - mean) / std);
  std::vector<double> numbers =
      rand(t.shape(), {.device = Device(), .dtype = DType::float64}).to_vector<double>();
  for (double& x : numbers) {
    const double p = first + (last - first) * x;
    x = p <= 0 ? low : p >= 1 ? high : mean + std * normal_quantile(p);
    x = std::min(std::max(x, low), high);
  }
  return write(t, tensor(numbers, {.device = Device()}).reshape(t.shape()));
}

const Tensor& constant_(const Tensor& t, double value) {
  check("constant_", t);
  const NoGrad guard;
  return t.fill_(value);
}
const Tensor& zeros_(const Tensor& t) { return constant_(t, 0); }
const Tensor& ones_(const Tensor& t) { return constant_(t, 1); }

const Tensor& eye_(const Tensor& t) {
  check_matrix("eye_", t, false);
  const Tensor rows = arange(t.size(0), {.device = t.device()}).unsqueeze(1),
               columns = arange(t.size(1), {.device = t.device()});
  return write(t, eq(rows, columns).to(t.dtype()));
}

double calculate_gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::tanh: return 5.0 / 3;
    case Nonlinearity::relu: return std::numbers::sqrt2;
    case Nonlinearity::leaky_relu: return std::sqrt(2 / (1 + slope * slope));
    case Nonlinearity::selu: return 0.75;
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid: break;
  }
  return 1;
}

std::pair<std::int64_t, std::int64_t> fan_in_and_out(const Tensor& weight) {
  if (weight.dim() < 2)
    throw ShapeError(str("fan_in_and_out: expected at least 2 dimensions, got ", weight.shape()));
  std::int64_t kernel = 1;
  for (int d = 2; d < weight.dim(); ++d) kernel *= weight.size(d);
  return {weight.size(1) * kernel, weight.size(0) * kernel};
}

const Tensor& xavier_uniform_(const Tensor& t, double gain) {
  check_at_least_0("xavier_uniform_", "gain", gain);
  const Fans f = fans("xavier_uniform_", t);
  const double bound = t.numel() ? gain * std::sqrt(6 / (f.in + f.out)) : 0;
  return write_uniform(t, -bound, bound);
}
const Tensor& xavier_normal_(const Tensor& t, double gain) {
  check_at_least_0("xavier_normal_", "gain", gain);
  const Fans f = fans("xavier_normal_", t);
  return write_normal(t, 0, t.numel() ? gain * std::sqrt(2 / (f.in + f.out)) : 0);
}

const Tensor& kaiming_uniform_(const Tensor& t, const KaimingOptions& options) {
  const double deviation = kaiming_deviation("kaiming_uniform_", t, options),
               bound = t.numel() ? std::sqrt(3.0) * deviation : 0;
  return write_uniform(t, -bound, bound);
}
const Tensor& kaiming_normal_(const Tensor& t, const KaimingOptions& options) {
  const double deviation = kaiming_deviation("kaiming_normal_", t, options);
  return write_normal(t, 0, t.numel() ? deviation : 0);
}

const Tensor& orthogonal_(const Tensor& t, double gain) {
  check_matrix("orthogonal_", t, true);
  check_finite("orthogonal_", "gain", gain);
  if (t.numel() == 0) return t;
  const std::int64_t rows = t.size(0), columns = t.numel() / rows;
  const bool by_rows = rows <= columns;  // the orthonormal vectors are the rows
  const auto count = static_cast<std::size_t>(by_rows ? rows : columns),
             length = static_cast<std::size_t>(by_rows ? columns : rows);
  std::vector<double> numbers =
      randn({t.numel()}, {.device = Device(), .dtype = DType::float64}).to_vector<double>();
  orthogonalise(numbers, length, count);
  for (double& x : numbers) x *= gain;
  const Tensor made =
      tensor(numbers, {.device = Device()})
          .reshape({static_cast<std::int64_t>(count), static_cast<std::int64_t>(length)});
  return write(t, (by_rows ? made : made.t()).reshape(t.shape()));
}

const Tensor& sparse_(const Tensor& t, double sparsity, double std) {
  check_matrix("sparse_", t, false);
  if (!(sparsity >= 0 && sparsity <= 1))
    throw ArgumentError(str("sparse_: expected 0 <= sparsity <= 1, got ", sparsity));
  check_at_least_0("sparse_", "std", std);
  const std::int64_t rows = t.size(0), columns = t.size(1),
                     empty =
                         static_cast<std::int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  std::vector<double> kept(static_cast<std::size_t>(rows * columns), 1);
  for (std::int64_t c = 0; c < columns; ++c) {
    const std::vector<std::int64_t> order =
        randperm(rows, {.device = Device()}).to_vector<std::int64_t>();
    for (std::int64_t i = 0; i < empty; ++i)
      kept[static_cast<std::size_t>(order[static_cast<std::size_t>(i)] * columns + c)] = 0;
  }
  return write(t, mul(randn(t.shape(), like(t)), std) *
                      tensor(kept, {.device = t.device(), .dtype = t.dtype()}).reshape(t.shape()));
}

}  // namespace braid::nn::init
