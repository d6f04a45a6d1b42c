#pragma once
#include <braid/core/precision.hpp>

namespace braid::test {

/// While it exists, products of float32 have another precision.
class PrecisionGuard {
 public:
  explicit PrecisionGuard(Float32Precision precision) { set_float32_precision(precision); }
  ~PrecisionGuard() { set_float32_precision(before_); }
  PrecisionGuard(const PrecisionGuard&) = delete;
  PrecisionGuard& operator=(const PrecisionGuard&) = delete;

 private:
  Float32Precision before_ = float32_precision();
};

}  // namespace braid::test
