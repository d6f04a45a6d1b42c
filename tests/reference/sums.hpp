#pragma once
// Sums of products, one term at a time. Compiled with optimisation in every build: under a
// sanitizer the references spend most of their time here.
#include <cstdint>

namespace reference {

/// A sum, and the sum of the magnitudes of its terms, which bounds its rounding errors.
struct SumAndSize {
  double sum, size;
};

/// Computes sum + Σ a[i · step_a] b[i · step_b] over n terms; the size is |sum| + Σ |a b|.
SumAndSize add_products(double sum, const double* a, std::int64_t step_a, const double* b,
                        std::int64_t step_b, std::int64_t n);
/// The same modulo 2^64.
std::uint64_t add_products(std::uint64_t sum, const std::uint64_t* a, std::int64_t step_a,
                           const std::uint64_t* b, std::int64_t step_b, std::int64_t n);

}  // namespace reference
