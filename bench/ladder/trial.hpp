#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <braid/core/backend.hpp>

#include "ladder/problems.hpp"

// One size of a problem with its numbers, on the host and on a CUDA device, and the answer in
// float64. The benchmark and the tests use the same.
namespace braid::ladder {

/// Floats on cuda:0 between marked ones, `shift` floats off an aligned address.
class DeviceFloats {
 public:
  explicit DeviceFloats(std::vector<float> values, int shift = 0);
  ~DeviceFloats();
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;
  [[nodiscard]] float* data() const { return static_cast<float*>(block_.data) + before_; }
  void set(const std::vector<float>& values);
  /// Waits and brings them back. Throws Error if something wrote outside.
  [[nodiscard]] std::vector<float> get() const;

 private:
  std::size_t before_, count_;
  Block block_;
};

/// A product of random matrices. `shift` moves all three off 16-byte addresses.
class SgemmTrial {
 public:
  using Problem = Sgemm;
  SgemmTrial(int m, int n, int k, int shift = 0);
  [[nodiscard]] Sgemm problem(bool large = false) const {
    return {a_.data(), b_.data(), c_.data(), m_, n_, k_, large};
  }
  /// Runs the step, in memory full of NaN, and returns the worst error of an element as a fraction
  /// of what rounding can make: k + 2 roundings of Σ|a||b|. Beyond 2^28 multiply-adds a sample of
  /// 4096 elements is compared.
  [[nodiscard]] double error(const Step<Sgemm>& step, bool large = false);
  [[nodiscard]] std::vector<float> result() const { return c_.get(); }
  [[nodiscard]] std::string text() const;
  /// additions and multiplications
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
  /// As above. An element may be off by 32 + n + 2 (max - min) roundings of it: the exponentials
  /// and their arguments, and a sum of n. Beyond 2^22 elements a sample of 64 rows is compared.
  [[nodiscard]] double error(const Step<Softmax>& step, bool = false);
  [[nodiscard]] std::string text() const;
  /// bytes: read once, written once
  [[nodiscard]] double work() const { return 2.0 * sizeof(float) * rows_ * n_; }
  static constexpr const char* kRate = "GB/s";

 private:
  int rows_, n_;
  double scale_;
  std::vector<float> host_x_;
  DeviceFloats x_, y_;
};

/// The stream that the trials and their steps use.
[[nodiscard]] Stream& stream();

}  // namespace braid::ladder
