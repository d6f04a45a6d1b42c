#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <braid/core/internal/backend.hpp>

#include "ladder/problems.hpp"

// One problem size with its data, on the host and on a CUDA device, and a check against float64.
// The benchmark and the tests share it.
namespace braid::ladder {

/// Numbers of a type, float or std::uint16_t (the bits of bfloat16), on cuda:0 between guard
/// values, `shift` numbers away from an aligned address.
template <class T> class DeviceNumbers {
 public:
  explicit DeviceNumbers(std::vector<T> values, int shift = 0);
  ~DeviceNumbers();
  DeviceNumbers(const DeviceNumbers&) = delete;
  DeviceNumbers& operator=(const DeviceNumbers&) = delete;
  [[nodiscard]] T* data() const { return static_cast<T*>(block_.data) + before_; }
  void set(const std::vector<T>& values);
  /// Waits and copies the numbers to the host. Throws Error if a guard value was overwritten.
  [[nodiscard]] std::vector<T> get() const;

 private:
  std::size_t before_, count_;
  Block block_;
};

using DeviceFloats = DeviceNumbers<float>;
using DeviceHalves = DeviceNumbers<std::uint16_t>;

/// A product of random matrices. `shift` moves all three away from 16-byte alignment.
class SgemmTrial {
 public:
  using Problem = Sgemm;
  SgemmTrial(int m, int n, int k, int shift = 0);
  [[nodiscard]] Sgemm problem(bool large = false) const {
    return {a_.data(), b_.data(), c_.data(), m_, n_, k_, large};
  }
  /// Runs the step with C filled with NaN. Returns the largest error of an element, as a fraction
  /// of the possible rounding error: k + 2 roundings of Σ|a||b|. Above 2^28 multiply-adds only
  /// about 4096 elements are compared.
  [[nodiscard]] double error(const Step<Sgemm>& step, bool large = false);
  [[nodiscard]] std::vector<float> result() const { return c_.get(); }
  [[nodiscard]] std::string text() const;
  /// number of additions and multiplications
  [[nodiscard]] double work() const { return 2.0 * m_ * n_ * k_; }
  /// multiply-adds, of 32 lanes each
  [[nodiscard]] std::uint64_t multiplies() const { return std::uint64_t(m_) * n_ * k_ / 32; }
  static constexpr const char* kRate = "GFLOP/s";

 private:
  int m_, n_, k_;
  std::vector<float> host_a_, host_b_;
  DeviceFloats a_, b_, c_;
};

/// A product of random matrices of bfloat16.
class TensorTrial {
 public:
  using Problem = Product;
  TensorTrial(int m, int n, int k, Use use, int shift = 0);
  [[nodiscard]] Product problem(bool large = false) const {
    return {a_.data(), b_.data(), c_.data(), m_, n_, k_, use_, large};
  }
  /// As SgemmTrial::error. The sums may round as float32's, and then once to bfloat16.
  [[nodiscard]] double error(const Step<Product>& step, bool large = false);
  [[nodiscard]] std::vector<std::uint16_t> result() const { return c_.get(); }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] double work() const { return 2.0 * m_ * n_ * k_; }
  [[nodiscard]] std::uint64_t multiplies() const { return std::uint64_t(m_) * n_ * k_ / 32; }
  static constexpr const char* kRate = "GFLOP/s";

 private:
  int m_, n_, k_;
  Use use_;
  std::vector<std::uint16_t> host_a_, host_b_;
  DeviceHalves a_, b_, c_;
};

/// Rows of random numbers in [-scale, scale). With `masked`, every third element is -inf.
class SoftmaxTrial {
 public:
  using Problem = Softmax;
  SoftmaxTrial(int rows, int n, double scale = 4, bool masked = false, int shift = 0);
  [[nodiscard]] Softmax problem(bool = false) const { return {x_.data(), y_.data(), rows_, n_}; }
  /// As SgemmTrial::error. The possible error of an element is 32 + n + 4 scale roundings of it:
  /// the exponentials and their arguments, and a sum of n. Above 2^22 elements only about 64 rows
  /// are compared.
  [[nodiscard]] double error(const Step<Softmax>& step, bool = false);
  [[nodiscard]] std::string text() const;
  /// bytes, if everything is read once and written once
  [[nodiscard]] double work() const { return 2.0 * sizeof(float) * rows_ * n_; }
  [[nodiscard]] std::uint64_t multiplies() const { return 0; }  // what it computes is not counted
  static constexpr const char* kRate = "GB/s";

 private:
  int rows_, n_;
  double scale_;
  std::vector<float> host_x_;
  DeviceFloats x_, y_;
};

/// Returns the stream that the trials and their steps use.
[[nodiscard]] Stream& stream();

}  // namespace braid::ladder
