#pragma once
// Shared by matmul and linear: a product of two matrices, computed by KernelTable::gemm.
#include <braid/core/internal/kernel_args/gemm.hpp>

#include "common.hpp"

namespace braid::ops {

/// Throws unless a and b are on one device and have one dtype that supports products.
void check_matmul(const char* op, const Tensor& a, const Tensor& b);

/// The product op(a) op(b) of the last two dims; op transposes if ta or tb. Requires equal batch
/// dims. bias: [n] or undefined. sum_a: also sums the rows of op(a); requires matrices whose
/// product is not empty. Keeps the memory that the kernel reads alive until the kernel is queued.
class Product {
 public:
  Product(const char* op, const Tensor& a, bool ta, const Tensor& b, bool tb,
          const Tensor& bias = {}, bool sum_a = false);
  /// Adds an epilogue. other: contiguous, of the result's number of elements; undefined where the
  /// epilogue needs none.
  void then(Epilogue epilogue, const Tensor& other = {});
  /// The kernel handles the inner batch dims that one stride steps through. This function loops
  /// over the outer ones.
  void launch() const;
  /// Computes two products of matrices, neither of them empty, with one kernel call.
  static void launch_pair(const Product& first, const Product& second);

  [[nodiscard]] const Tensor& result() const { return c_; }
  /// The result with another shape of as many elements; no view of it.
  [[nodiscard]] Tensor result(const Shape& shape) const;
  [[nodiscard]] const Tensor& sum_a() const { return sum_a_; }

 private:
  const char* op_;
  Tensor c_, sum_a_, x_, y_, bias_, other_;
  GemmArgs args_{};
  int outer_ = 0;              // the batch dims that launch loops over
  std::int64_t launches_ = 1;  // the product of their sizes
};

/// Computes a product. Not recorded.
[[nodiscard]] Tensor product(const char* op, const Tensor& a, bool ta, const Tensor& b, bool tb,
                             const Tensor& bias = {});
/// A recorded product. Each gradient is again a product, of the two other tensors, transposed as
/// needed. So no views are created.
[[nodiscard]] Tensor recorded_product(const Tensor& a, bool ta, const Tensor& b, bool tb);

}  // namespace braid::ops
