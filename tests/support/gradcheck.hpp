#pragma once
// Checks gradients against central differences in float64: the whole Jacobian, for every input that
// requires a gradient, with incoming gradients in every layout. Where calls are expensive, checks
// along random directions instead, like the fast_mode of PyTorch's gradcheck.
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <braid/core/autograd.hpp>

#include "support/tensors.hpp"

namespace braid::test {

/// A function from tensors to tensors.
using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct GradientDifferenceOptions {
  double eps = 1e-6, rtol = 1e-3, atol = 1e-5;
  bool incoming_layouts = true;  ///< also checks the incoming gradient in every layout
  /// If not 0: checks w J v for so many pairs of random directions, two calls each, instead of the
  /// whole Jacobian J.
  int directions = 0;
};

/// Returns "" if the gradients of f at the inputs agree with central differences and two runs give
/// the same bits, else the first difference.
[[nodiscard]] std::string gradient_difference(const Function& f, const std::vector<Tensor>& inputs,
                                              const GradientDifferenceOptions& o = {});
/// Applies gradient_difference to the gradient itself: (inputs, incoming gradients) →
/// grad(f(inputs), inputs, incoming gradients, create_graph).
[[nodiscard]] std::string second_gradient_difference(const Function& f,
                                                     const std::vector<Tensor>& inputs,
                                                     const GradientDifferenceOptions& o = {});

/// Wraps a callable as a Function. It takes one to four tensors, or a vector of them, and returns
/// one tensor or several.
template <class F> [[nodiscard]] Function function_of(F f) {
  const auto pack = [](auto&& result) {
    if constexpr (std::is_convertible_v<decltype(result), Tensor>)
      return std::vector<Tensor>{result};
    else return std::vector<Tensor>(result);
  };
  return [f, pack](const std::vector<Tensor>& t) -> std::vector<Tensor> {
    if constexpr (std::is_invocable_v<F, const std::vector<Tensor>&>) return pack(f(t));
    else if constexpr (std::is_invocable_v<F, const Tensor&>) return pack(f(t.at(0)));
    else if constexpr (std::is_invocable_v<F, const Tensor&, const Tensor&>)
      return pack(f(t.at(0), t.at(1)));
    else if constexpr (std::is_invocable_v<F, const Tensor&, const Tensor&, const Tensor&>)
      return pack(f(t.at(0), t.at(1), t.at(2)));
    else return pack(f(t.at(0), t.at(1), t.at(2), t.at(3)));
  };
}

}  // namespace braid::test

/// CHECK_GRAD(f, x, …): checks the gradient and the second gradient of f at float64 inputs.
#define CHECK_GRAD(f, ...)                                                                         \
  do {                                                                                             \
    CHECK(::braid::test::gradient_difference(::braid::test::function_of(f), {__VA_ARGS__}) == ""); \
    CHECK(::braid::test::second_gradient_difference(::braid::test::function_of(f),                 \
                                                    {__VA_ARGS__}) == "");                         \
  } while (false)
