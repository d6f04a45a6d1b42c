#pragma once
#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/core/autograd.hpp>

// Derivatives of whole functions: products with the Jacobian matrix, the matrix itself, second
// derivatives, and a check of gradients against differences.
//
// f takes the inputs as separate tensors (up to 8) or as one vector of tensors. It returns one
// tensor or a vector of tensors, and must be made of recorded ops. The inputs do not have to
// require a gradient, and their grad() does not change.
namespace braid {

namespace detail {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

template <class> using TensorArgument = const Tensor&;
template <class F, class... T>
concept TakesTensors = std::invocable<F&, TensorArgument<T>...>;

/// The number of tensors that f takes; 0 if it takes a vector of them.
template <class F, class... T> consteval std::size_t tensor_arguments() {
  if constexpr (TakesTensors<F, int, T...>) return 1 + sizeof...(T);
  else if constexpr (sizeof...(T) < 7) return tensor_arguments<F, int, T...>();
  else {
    static_assert(std::invocable<F&, const std::vector<Tensor>&>,
                  "braid: expected a function of up to 8 Tensors, or of a std::vector<Tensor>");
    return 0;
  }
}

void check_inputs(std::size_t expected, std::size_t got);

/// True if f returns several tensors, so that the result has one entry for each.
template <class F, std::size_t... I> consteval bool returns_many(std::index_sequence<I...>) {
  if constexpr (sizeof...(I) == 0)
    return !std::convertible_to<std::invoke_result_t<F&, const std::vector<Tensor>&>, Tensor>;
  else
    return !std::convertible_to<
        std::invoke_result_t<F&, TensorArgument<std::integral_constant<std::size_t, I>>...>,
        Tensor>;
}
template <class F>
inline constexpr bool kReturnsMany =
    returns_many<F>(std::make_index_sequence<tensor_arguments<F>()>());

template <class F> TensorFunction tensor_function(F& f) {
  constexpr std::size_t n = tensor_arguments<F>();
  return [&f](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    const auto call = [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
      if constexpr (n == 0) return f(t);
      else {
        check_inputs(n, t.size());
        return f(t[I]...);
      }
    };
    auto result = call(std::make_index_sequence<n>());
    if constexpr (kReturnsMany<F>) return {result.begin(), result.end()};
    else return {Tensor(result)};
  };
}

struct Products {
  std::vector<Tensor> outputs, products;
};
[[nodiscard]] Products vjp(const TensorFunction& f, const std::vector<Tensor>& inputs,
                           const std::vector<Tensor>& vectors, bool create_graph);
[[nodiscard]] Products jvp(const TensorFunction& f, const std::vector<Tensor>& inputs,
                           const std::vector<Tensor>& vectors, bool create_graph);
[[nodiscard]] std::vector<std::vector<Tensor>> jacobian(const TensorFunction& f,
                                                        const std::vector<Tensor>& inputs,
                                                        bool create_graph);
[[nodiscard]] std::vector<std::vector<Tensor>> hessian(const TensorFunction& f,
                                                       const std::vector<Tensor>& inputs,
                                                       bool create_graph);
[[nodiscard]] Products hvp(const TensorFunction& f, const std::vector<Tensor>& inputs,
                           const std::vector<Tensor>& vectors, bool create_graph);
}  // namespace detail

/// Returns f(inputs) and vᵀ J: the gradients of the sum of v · f(inputs) by each input.
///
/// v         one tensor for each output, of its shape and dtype; may be empty for one output of one
///           element, and is then 1
/// Returns   {outputs, gradients}. An input that f does not use has a gradient of zeros. They are
///           recorded only with create_graph
/// Throws    ArgumentError for another number of inputs or vectors, ShapeError, DTypeError; also
///           DTypeError for an output that is not floating point
///
///     const auto [value, gradient] = vjp([](const Tensor& t) { return exp(t); }, x, y);
template <class F>
[[nodiscard]] std::pair<std::vector<Tensor>, std::vector<Tensor>> vjp(
    F&& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v = {},
    bool create_graph = false) {
  detail::Products p = detail::vjp(detail::tensor_function(f), inputs, v, create_graph);
  return {std::move(p.outputs), std::move(p.products)};
}
template <class F>
[[nodiscard]] std::pair<Tensor, Tensor> vjp(F&& f, const Tensor& input, const Tensor& v = {},
                                            bool create_graph = false) {
  const std::vector<Tensor> vectors(v.defined() ? 1 : 0, v);
  detail::Products p = detail::vjp(detail::tensor_function(f), {input}, vectors, create_graph);
  return {std::move(p.outputs.at(0)), std::move(p.products.at(0))};
}

/// Returns f(inputs) and J v: the derivatives of the outputs along the direction v. Computed as the
/// gradient of the gradient, so every op of f must have gradients of second order.
///
/// v         one tensor for each input, of its shape and dtype
/// Returns   as vjp
/// Throws    as vjp
template <class F>
[[nodiscard]] std::pair<std::vector<Tensor>, std::vector<Tensor>> jvp(
    F&& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v,
    bool create_graph = false) {
  detail::Products p = detail::jvp(detail::tensor_function(f), inputs, v, create_graph);
  return {std::move(p.outputs), std::move(p.products)};
}
template <class F>
[[nodiscard]] std::pair<Tensor, Tensor> jvp(F&& f, const Tensor& input, const Tensor& v,
                                            bool create_graph = false) {
  detail::Products p = detail::jvp(detail::tensor_function(f), {input}, {v}, create_graph);
  return {std::move(p.outputs.at(0)), std::move(p.products.at(0))};
}

/// Returns the Jacobian: the derivative of every element of the output by every element of the
/// input.
///
/// Shapes    output.shape + input.shape, for each pair of an output and an input: a Tensor for one
///           input and output; with a vector of inputs a vector of them; if f returns several
///           tensors, a vector of such vectors
/// Gradient  with create_graph
/// Throws    as vjp
/// Cost      one backward for each element of the outputs
///
///     const Tensor j = jacobian([](const Tensor& t) { return t * t; }, tensor({1.0, 2.0}));
///     print(j);  // a diagonal of 2 and 4
template <class F>
[[nodiscard]] auto jacobian(F&& f, const std::vector<Tensor>& inputs, bool create_graph = false) {
  std::vector<std::vector<Tensor>> all =
      detail::jacobian(detail::tensor_function(f), inputs, create_graph);
  if constexpr (detail::kReturnsMany<std::remove_reference_t<F>>) return all;
  else return std::move(all.at(0));
}
template <class F>
[[nodiscard]] auto jacobian(F&& f, const Tensor& input, bool create_graph = false) {
  auto all = jacobian(f, std::vector<Tensor>{input}, create_graph);
  if constexpr (detail::kReturnsMany<std::remove_reference_t<F>>) return all;
  else return Tensor(std::move(all.at(0)));
}

/// Returns the second derivatives of a function whose result has one element.
///
/// Shapes    a.shape + b.shape, for each pair of inputs a and b: a Tensor for one input; with a
///           vector of inputs a vector, indexed by a, of vectors, indexed by b
/// Throws    as vjp; ShapeError if the result has not one element
template <class F>
[[nodiscard]] std::vector<std::vector<Tensor>> hessian(F&& f, const std::vector<Tensor>& inputs,
                                                       bool create_graph = false) {
  return detail::hessian(detail::tensor_function(f), inputs, create_graph);
}
template <class F>
[[nodiscard]] Tensor hessian(F&& f, const Tensor& input, bool create_graph = false) {
  return detail::hessian(detail::tensor_function(f), {input}, create_graph).at(0).at(0);
}

/// Returns f(inputs) and the product of the Hessian with v, at the cost of two backwards.
///
/// v         one tensor for each input, of its shape and dtype
/// Throws    as hessian
template <class F>
[[nodiscard]] std::pair<Tensor, std::vector<Tensor>> hvp(F&& f, const std::vector<Tensor>& inputs,
                                                         const std::vector<Tensor>& v,
                                                         bool create_graph = false) {
  detail::Products p = detail::hvp(detail::tensor_function(f), inputs, v, create_graph);
  return {std::move(p.outputs.at(0)), std::move(p.products)};
}
template <class F>
[[nodiscard]] std::pair<Tensor, Tensor> hvp(F&& f, const Tensor& input, const Tensor& v,
                                            bool create_graph = false) {
  detail::Products p = detail::hvp(detail::tensor_function(f), {input}, {v}, create_graph);
  return {std::move(p.outputs.at(0)), std::move(p.products.at(0))};
}

/// The options of gradcheck; the defaults are PyTorch's.
struct GradcheckOptions {
  double eps = 1e-6;  ///< the step of the differences
  double atol = 1e-5, rtol = 1e-3;
  /// the largest difference between two backwards of the same graph
  double nondet_tol = 0;
  /// false: a difference makes the function return false instead of throwing
  bool raise_exception = true;
};

namespace detail {
bool gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
               const GradcheckOptions& options);
bool gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                   const GradcheckOptions& options);
}  // namespace detail

/// Compares the gradients of f with central differences, element by element.
///
/// inputs    those that require a gradient must be float64; at least one must
/// Returns   true
/// Throws    AutogradError that names the first element of an output and of an input that differ,
///           with both values; also if two backwards differ, or a gradient has not the shape, dtype
///           or device of its input. DTypeError for an input of another floating-point type, and
///           ArgumentError if no input requires a gradient
///
///     const Tensor x = randn({3}, {.dtype = DType::float64, .requires_grad = true});
///     gradcheck([](const Tensor& t) { return t * exp(t); }, {x});
template <class F>
bool gradcheck(F&& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {}) {
  return detail::gradcheck(detail::tensor_function(f), inputs, options);
}
/// The same for the gradients of the gradients.
template <class F>
bool gradgradcheck(F&& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {}) {
  return detail::gradgradcheck(detail::tensor_function(f), inputs, options);
}

}  // namespace braid
