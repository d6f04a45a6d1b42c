#include <atomic>

#include <braid/core/error.hpp>
#include <braid/core/precision.hpp>

namespace braid {

namespace { std::atomic<Float32Precision> chosen{Float32Precision::exact}; }  // namespace

void set_float32_precision(Float32Precision precision) {
  switch (precision) {
    case Float32Precision::exact:
    case Float32Precision::tf32x3:
    case Float32Precision::tf32: return chosen.store(precision, std::memory_order_relaxed);
  }
  throw ArgumentError(str("set_float32_precision: expected exact, tf32x3 or tf32, got ",
                          static_cast<int>(precision)));
}

Float32Precision float32_precision() noexcept { return chosen.load(std::memory_order_relaxed); }

void set_float32_matmul_precision(std::string_view precision) {
  if (precision == "highest") return set_float32_precision(Float32Precision::exact);
  if (precision == "high" || precision == "medium")
    return set_float32_precision(Float32Precision::tf32);
  throw ArgumentError(
      str("set_float32_matmul_precision: expected highest, high or medium, got ", precision));
}

std::string_view get_float32_matmul_precision() noexcept {
  return float32_precision() == Float32Precision::tf32 ? "high" : "highest";
}

}  // namespace braid
