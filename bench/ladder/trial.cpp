#include "ladder/trial.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <braid/core/error.hpp>

#include "support/formula.hpp"

namespace braid::ladder {
namespace {

constexpr std::size_t kGuard = 64;  // numbers: a multiple of 16 bytes
template <class T> constexpr T kMark = static_cast<T>(12345.678f);
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

std::size_t size(int n) { return static_cast<std::size_t>(n); }

/// Returns the largest of off(element of C, Σ term(i, j, p), Σ|term|). Of a large product only a
/// sample of elements, spread over rows and columns.
template <class Term, class Off> double worst_sum(int m, int n, int k, Term term, Off off) {
  const std::size_t apart =
      product(m, n) <= (std::size_t{1} << 28) / size(k) ? 1 : (product(m, n) / 4096 + 37) | 1;
  double worst = 0;
  for (std::size_t e = 0; e < product(m, n); e += apart) {
    double sum = 0, sizes = 0;
    for (std::size_t p = 0; p < size(k); ++p) {
      const double x = term(e / size(n), e % size(n), p);
      sum += x, sizes += std::fabs(x);
    }
    worst = worse(worst, off(e, sum, sizes));
  }
  return worst;
}

// bfloat16 is the upper half of a float32.
float widened(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
std::vector<std::uint16_t> halves(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint16_t> out;
  for (const float x : bench::uniform(static_cast<std::int64_t>(count), seed))
    out.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16));
  return out;
}
constexpr std::uint16_t kHalfNan = 0x7fc0;

}  // namespace

Stream& stream() { return *context().stream; }

template <class T>
DeviceNumbers<T>::DeviceNumbers(std::vector<T> values, int shift)
    : before_(kGuard + static_cast<std::size_t>(shift)), count_(values.size()) {
  block_ = context().backend->allocate((before_ + count_ + kGuard) * sizeof(T), stream());
  set(values);
}

template <class T> DeviceNumbers<T>::~DeviceNumbers() {
  context().backend->release(block_, stream());
}

template <class T> void DeviceNumbers<T>::set(const std::vector<T>& values) {
  std::vector<T> all(before_ + count_ + kGuard, kMark<T>);
  std::copy(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(before_));
  context().backend->copy(
      {block_.data, stream().device(), all.data(), Device(), all.size() * sizeof(T)}, stream());
}

template <class T> std::vector<T> DeviceNumbers<T>::get() const {
  std::vector<T> all(before_ + count_ + kGuard);
  context().backend->copy(
      {all.data(), Device(), block_.data, stream().device(), all.size() * sizeof(T)}, stream());
  stream().synchronize();
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(before_),
             last = first + static_cast<std::ptrdiff_t>(count_);
  const auto marked = [](T v) { return v == kMark<T>; };
  if (!std::all_of(all.begin(), first, marked) || !std::all_of(last, all.end(), marked)) {
    throw Error("ladder: expected that a step writes its result alone, got others changed");
  }
  return {first, last};
}

template class DeviceNumbers<float>;
template class DeviceNumbers<std::uint16_t>;

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
  return worst_sum(
      m_, n_, k_,
      [&](std::size_t i, std::size_t j, std::size_t p) {
        return static_cast<double>(host_a_[i * size(k_) + p]) * host_b_[p * size(n_) + j];
      },
      [&](std::size_t e, double sum, double sizes) {
        return std::fabs(c[e] - sum) / ((k_ + 2) * kUnit * sizes + 1e-38);
      });
}

std::string SgemmTrial::text() const {
  return "sgemm " + std::to_string(m_) + " x " + std::to_string(n_) + " x " + std::to_string(k_);
}

TensorTrial::TensorTrial(int m, int n, int k, Use use, int shift)
    : m_(m),
      n_(n),
      k_(k),
      use_(use),
      host_a_(halves(product(m, k), 1)),
      host_b_(halves(product(k, n), 2)),
      a_(host_a_, shift),
      b_(host_b_, shift),
      c_(std::vector<std::uint16_t>(product(m, n), kHalfNan), shift) {}

double TensorTrial::error(const Step<Product>& step, bool large) {
  c_.set(std::vector<std::uint16_t>(product(m_, n_), kHalfNan));
  step.launch(problem(large), stream());
  const std::vector<std::uint16_t> c = c_.get();
  constexpr double kHalfUnit = 0x1p-8;  // of bfloat16
  return worst_sum(
      m_, n_, k_,
      [&](std::size_t i, std::size_t j, std::size_t p) {
        const std::size_t a = use_ == Use::weight ? p * size(m_) + i : i * size(k_) + p,
                          b = use_ == Use::forward ? j * size(k_) + p : p * size(n_) + j;
        return static_cast<double>(widened(host_a_[a])) * widened(host_b_[b]);
      },
      [&](std::size_t e, double sum, double sizes) {
        const double summed = (k_ + 2) * kUnit * sizes;
        return std::fabs(widened(c[e]) - sum) /
               (summed + kHalfUnit * (std::fabs(sum) + summed) + 1e-38);
      });
}

std::string TensorTrial::text() const {
  const char* const uses[] = {"forward", "input", "weight"};
  return std::string("bf16 ") + uses[static_cast<int>(use_)] + " " + std::to_string(m_) + " x " +
         std::to_string(n_) + " x " + std::to_string(k_);
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
