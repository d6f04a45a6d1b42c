#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <braid/core/backend.hpp>

#include "ladder/problems.hpp"

// One problem size with its data, on the host and on a CUDA device, and a check against float64.
// The benchmark and the tests share it.
namespace braid::ladder {

/// Floats on cuda:0 between guard values, `shift` floats away from an aligned address.
class DeviceFloats {
 public:
  explicit DeviceFloats(std::vector<float> values, int shift = 0);
  ~DeviceFloats();
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;
  [[nodiscard]] float* data() const { return static_cast<float*>(block_.data) + before_; }
  void set(const std::vector<float>& values);
  /// Waits and copies the floats to the host. Throws Error if a guard value was overwritten.
  [[nodiscard]] std::vector<float> get() const;

 private:
  std::size_t before_, count_;
  Block block_;
};

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
  static constexpr const char* kRate = "GFLOP/s";

 private:
  int m_, n_, k_;
  std::vector<float> host_a_, host_b_;
  DeviceFloats a_, b_, c_;
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
