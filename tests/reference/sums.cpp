#include "reference/sums.hpp"

#include <cmath>

namespace reference {

SumAndSize add_products(double sum, const double* a, std::int64_t step_a, const double* b,
                        std::int64_t step_b, std::int64_t n) {
  double size = std::fabs(sum);
  for (std::int64_t i = 0; i < n; ++i) {
    const double product = a[i * step_a] * b[i * step_b];
    sum += product;
    size += std::fabs(product);
  }
  return {sum, size};
}

std::uint64_t add_products(std::uint64_t sum, const std::uint64_t* a, std::int64_t step_a,
                           const std::uint64_t* b, std::int64_t step_b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum += a[i * step_a] * b[i * step_b];
  return sum;
}

}  // namespace reference
