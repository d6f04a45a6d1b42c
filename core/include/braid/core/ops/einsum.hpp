#pragma once
#include <concepts>
#include <initializer_list>
#include <span>
#include <string_view>

#include <braid/core/tensor.hpp>

namespace braid {

/// Sums of products in Einstein notation: einsum("bij,bjk->bik", a, b) is a batch of matrix
/// products.
///
/// Equation  a letter (a-z, A-Z) for each dim of each operand, operands separated by commas, then
///           -> and the letters of the result; spaces are skipped. A letter that the result lacks
///           is summed over. A letter that an operand has twice takes its diagonal. `...` stands
///           for any further dims, which broadcast from the right. Without -> the result has the
///           dims of the ellipsis and then, in alphabetical order with capitals first, the letters
///           that occur once
/// Shapes    dims with the same letter have one size, or 1, which broadcasts
/// Types     one dtype for all. If dims are summed, it must be one that matmul (for two operands)
///           or sum (for one) supports. Integers keep their dtype; each product and sum of float16
///           and bfloat16 is rounded once
/// Gradient  that of the views, sums and products that it consists of. Operands are contracted from
///           left to right by batched matmul
/// Throws    ArgumentError for an invalid equation, with the position; ShapeError, with the letter
///           whose sizes differ; DTypeError; DeviceError
[[nodiscard]] Tensor einsum(std::string_view equation, std::span<const Tensor> operands);
[[nodiscard]] Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands);
template <std::convertible_to<Tensor>... T>
[[nodiscard]] Tensor einsum(std::string_view equation, const T&... operands) {
  return einsum(equation, {Tensor(operands)...});
}

}  // namespace braid
