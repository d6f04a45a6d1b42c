#pragma once
#include <string_view>

// The precision of float32 products on tensor cores.
namespace braid {

/// How CUDA devices multiply matrices of float32, and convolve images of float32. Storage, bias,
/// and every other op stay float32.
enum class Float32Precision {
  exact,  ///< The default: every product and sum in float32
  /// Tensor cores, each number as the sum of two of TF32 (3xTF32): about as exact as float32.
  /// An infinite operand, or one that rounds to infinity, gives NaN
  tf32x3,
  tf32,  ///< Tensor cores: operands rounded to TF32 (10 bits of mantissa), sums in float32
};

/// Sets the precision of all later products of the process: matmul, linear, convolutions, what is
/// made of them, and their gradients. The CPU always computes exactly, and so do CUDA devices where
/// a product is so small that a tensor core does not make it faster. scaled_dot_product_attention
/// is not affected.
///
/// Throws    ArgumentError for another value
/// Source    Ootomo and Yokota 2022, arXiv:2203.03341, for tf32x3
///
///     set_float32_precision(Float32Precision::tf32);
void set_float32_precision(Float32Precision precision);
/// Returns what set_float32_precision last set.
[[nodiscard]] Float32Precision float32_precision() noexcept;

/// PyTorch's names: "highest" is exact, "high" and "medium" are tf32 (as PyTorch's CUDA devices
/// have it). Convolutions follow it too, for which PyTorch has a separate flag.
///
/// Throws    ArgumentError for another name
///
///     set_float32_matmul_precision("high");
void set_float32_matmul_precision(std::string_view precision);
/// Returns "highest" for exact and tf32x3, "high" for tf32.
[[nodiscard]] std::string_view get_float32_matmul_precision() noexcept;

}  // namespace braid
