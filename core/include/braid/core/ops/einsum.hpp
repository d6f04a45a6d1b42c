#pragma once
#include <concepts>
#include <initializer_list>
#include <span>
#include <string_view>

#include <braid/core/tensor.hpp>

namespace braid {

/// Sums of products, in Einstein's notation: einsum("bij,bjk->bik", a, b) is a batch of matrix
/// products.
///
/// Equation  a letter (a-z, A-Z) for each dim of each operand, operands apart by commas, then ->
///           and the letters of the result; blanks are skipped. A letter that the result lacks is
///           summed over; one that an operand has twice is its diagonal; `...` stands for any
///           further dims, which broadcast from the right. Without -> the result has the ellipsis
///           and then, in alphabetic order with capitals first, the letters that occur once
/// Shapes    dims of one letter have one size, or 1, which broadcasts
/// Types     one dtype for all; what is summed needs a dtype that matmul (two operands) or sum
///           (one) takes; integers stay what they are;
///           each product and sum of float16 and bfloat16 is rounded once
/// Gradient  of the views, sums and products that it is made of; contracted from left to right
///           through batched matmul
/// Throws    ArgumentError for an equation that is none, with the place; ShapeError that names the
///           letter whose sizes differ; DTypeError; DeviceError
[[nodiscard]] Tensor einsum(std::string_view equation, std::span<const Tensor> operands);
[[nodiscard]] Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands);
template <std::convertible_to<Tensor>... T>
[[nodiscard]] Tensor einsum(std::string_view equation, const T&... operands) {
  return einsum(equation, {Tensor(operands)...});
}

}  // namespace braid
