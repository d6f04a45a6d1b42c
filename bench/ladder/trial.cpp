#include "ladder/trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <braid/core/error.hpp>

#include "support/formula.hpp"

namespace braid::ladder {
namespace {

constexpr std::size_t kGuard = 64;  // floats: a multiple of 16 bytes
constexpr float kMark = -12345.678f;
constexpr double kUnit = 0x1p-24;  // of float32: half a unit in the last place

const DeviceContext& context() { return device_context(Device("cuda:0")); }

std::vector<float> nans(std::size_t count) {
  return std::vector<float>(count, std::numeric_limits<float>::quiet_NaN());
}

std::size_t product(int a, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

std::vector<float> rows_of(int rows, int n, double scale, bool masked) {
  std::vector<float> x = bench::uniform(static_cast<std::int64_t>(product(rows, n)), 3, scale);
  if (masked)
    for (std::size_t i = 1; i < x.size(); i += 3) x[i] = -std::numeric_limits<float>::infinity();
  return x;
}

// Returns the larger of the two; NaN counts as larger than any number.
double worse(double a, double b) { return b <= a ? a : b; }

}  // namespace

Stream& stream() { return *context().stream; }

DeviceFloats::DeviceFloats(std::vector<float> values, int shift)
    : before_(kGuard + static_cast<std::size_t>(shift)), count_(values.size()) {
  block_ = context().backend->allocate((before_ + count_ + kGuard) * sizeof(float), stream());
  set(values);
}

DeviceFloats::~DeviceFloats() { context().backend->release(block_, stream()); }

void DeviceFloats::set(const std::vector<float>& values) {
  std::vector<float> all(before_ + count_ + kGuard, kMark);
  std::copy(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(before_));
  context().backend->copy(
      {block_.data, stream().device(), all.data(), Device(), all.size() * sizeof(float)}, stream());
}

std::vector<float> DeviceFloats::get() const {
  std::vector<float> all(before_ + count_ + kGuard);
  context().backend->copy(
      {all.data(), Device(), block_.data, stream().device(), all.size() * sizeof(float)}, stream());
  stream().synchronize();
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(before_),
             last = first + static_cast<std::ptrdiff_t>(count_);
  const auto marked = [](float v) { return v == kMark; };
  if (!std::all_of(all.begin(), first, marked) || !std::all_of(last, all.end(), marked)) {
    throw Error("ladder: expected that a step writes its result alone, got others changed");
  }
  return {first, last};
}

SgemmTrial::SgemmTrial(int m, int n, int k, int shift)
    : m_(m),
      n_(n),
      k_(k),
      host_a_(bench::uniform(static_cast<std::int64_t>(product(m, k)), 1)),
      host_b_(bench::uniform(static_cast<std::int64_t>(product(k, n)), 2)),
      a_(host_a_, shift),
      b_(host_b_, shift),
      c_(nans(product(m, n)), shift) {}

double SgemmTrial::error(const Step<Sgemm>& step, bool large) {
  c_.set(nans(product(m_, n_)));
  step.launch(problem(large), stream());
  const std::vector<float> c = c_.get();
  // For large problems compare a sample of elements, spread over rows and columns.
  const std::size_t apart = product(m_, n_) <= (std::size_t{1} << 28) / static_cast<std::size_t>(k_)
                                ? 1
                                : (product(m_, n_) / 4096 + 37) | 1;
  double worst = 0;
  for (std::size_t e = 0; e < c.size(); e += apart) {
    const std::size_t i = e / static_cast<std::size_t>(n_), j = e % static_cast<std::size_t>(n_);
    double sum = 0, sizes = 0;
    for (std::size_t p = 0; p < static_cast<std::size_t>(k_); ++p) {
      const double term = static_cast<double>(host_a_[i * static_cast<std::size_t>(k_) + p]) *
                          host_b_[p * static_cast<std::size_t>(n_) + j];
      sum += term, sizes += std::fabs(term);
    }
    worst = worse(worst, std::fabs(c[e] - sum) / ((k_ + 2) * kUnit * sizes + 1e-38));
  }
  return worst;
}

std::string SgemmTrial::text() const {
  return "sgemm " + std::to_string(m_) + " x " + std::to_string(n_) + " x " + std::to_string(k_);
}

SoftmaxTrial::SoftmaxTrial(int rows, int n, double scale, bool masked, int shift)
    : rows_(rows),
      n_(n),
      scale_(scale),
      host_x_(rows_of(rows, n, scale, masked)),
      x_(host_x_, shift),
      y_(nans(host_x_.size()), shift) {}

double SoftmaxTrial::error(const Step<Softmax>& step, bool) {
  y_.set(nans(host_x_.size()));
  step.launch(problem(), stream());
  const std::vector<float> y = y_.get();
  const int apart = host_x_.size() <= std::size_t{1} << 22 ? 1 : std::max(rows_ / 64, 1);
  const double tolerance = (32 + n_ + 4 * scale_) * kUnit;
  double worst = 0;
  for (int r = 0; r < rows_; r += apart) {
    const float* const x = host_x_.data() + product(r, n_);
    const double max = *std::max_element(x, x + n_);
    double sum = 0;
    for (int j = 0; j < n_; ++j) sum += std::exp(x[j] - max);
    for (int j = 0; j < n_; ++j) {
      const double expected = std::exp(x[j] - max) / sum;
      const double off = std::fabs(y[product(r, n_) + static_cast<std::size_t>(j)] - expected) /
                         (tolerance * expected + 1e-38);
      // A row of only -inf is NaN on both sides.
      if (!(std::isnan(expected) && std::isnan(y[product(r, n_) + static_cast<std::size_t>(j)])))
        worst = worse(worst, off);
    }
  }
  return worst;
}

std::string SoftmaxTrial::text() const {
  return "softmax " + std::to_string(rows_) + " x " + std::to_string(n_);
}

}  // namespace braid::ladder
