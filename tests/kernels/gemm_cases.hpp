#pragma once
#include <array>
#include <functional>
#include <string>
#include <vector>

#include <braid/core/internal/kernel_args/gemm.hpp>

#include "kernels/kernel_support.hpp"

// Checks matrix products of any shape and layout against a plain triple loop.
namespace kernel_test {

struct Product {
  std::int64_t m, n, k;
  bool ta = false, tb = false;
  bool accumulate = false, bias = false;
  std::int64_t batch = 1;
  std::int64_t pad = 0;  // leading dims are larger than the minimum
  std::int64_t shift = 0;
  bool repeat_a = false, repeat_b = false;
  bool sums = false;
  braid::Epilogue epilogue = braid::Epilogue::none;
  bool kept = false;             // gelu writes its input to other
  std::int64_t other_shift = 0;  // of other, beside shift
  double rounded = 0;            // relative error of a product of two elements, before it is summed
  std::function<void(const braid::GemmArgs&)> by = nullptr;  // null: the table's kernel

  /// The number of elements that one matrix spans, and the position of an element of batch q.
  [[nodiscard]] std::int64_t size_a() const;
  [[nodiscard]] std::int64_t size_b() const;
  [[nodiscard]] std::int64_t size_c() const;
  [[nodiscard]] std::int64_t at_a(std::int64_t q, std::int64_t i, std::int64_t p) const;
  [[nodiscard]] std::int64_t at_b(std::int64_t q, std::int64_t p, std::int64_t j) const;
  [[nodiscard]] std::int64_t at_c(std::int64_t q, std::int64_t i, std::int64_t j) const;
  [[nodiscard]] braid::GemmArgs args(DType t, void* a, void* b, void* c, void* of_bias,
                                     void* of_sums, void* of_other) const;
};
using Shape = std::array<std::int64_t, 3>;
/// Returns a product of m, n, k in one of four layouts.
Product product(const Shape& shape, int layout);

/// Buffers of the minimum size, so that a checker detects every access outside.
struct Operands {
  Product s;
  Buffer a, b, c, bias, sums, other;
  braid::GemmArgs args{};

  Operands(DType t, const Product& what);
  void run();
};

std::string describe(DType t, const Product& s);
/// The epilogue of z, with the element o of other.
double finished(braid::Epilogue epilogue, double z, double o);
/// The error of finished() for a z with this error; u is a rounding of the arithmetic.
double finished_error(braid::Epilogue epilogue, double z, double o, double error, double u);
/// Checks that results are within ((k + 2) u + rounded) Σ|a||b|, which holds for any order of
/// summation, and of what the epilogue makes of that; and row sums within the bound of their tree.
/// Integers must be exact. Nothing else of C and of other may change.
void check(DType t, const Product& s);
/// Checks the epilogue alone: its results are those of the elements that the product gives without
/// it, exactly, or of gelu within a few roundings. change: is applied to the operands of both.
void check_apart(
    DType t, const Product& s, const std::function<void(Operands&)>& change = [](Operands&) {});

extern const std::vector<DType> kGemmTypes;
/// The epilogues that a dtype has, without none.
std::vector<braid::Epilogue> epilogues_of(DType t);

}  // namespace kernel_test
