#pragma once
// Gradients against central differences, in float64: the whole Jacobian, every input that requires
// a gradient, incoming gradients in every layout. Or, where calls are dear, along random
// directions, as PyTorch's gradcheck does with fast_mode.
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <braid/core/autograd.hpp>

#include "support/tensors.hpp"

namespace braid::test {

/// Tensors to tensors.
using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct GradcheckOptions {
  double eps = 1e-6, rtol = 1e-3, atol = 1e-5;
  bool incoming_layouts = true;  ///< the incoming gradient in every layout too
  /// instead of the whole Jacobian J: w J v for so many pairs of random directions, two calls each
  int directions = 0;
};

/// Empty if the gradients of f at the inputs agree with central differences and are the same bits
/// twice; else the first difference.
[[nodiscard]] std::string gradcheck(const Function& f, const std::vector<Tensor>& inputs,
                                    const GradcheckOptions& o = {});
/// gradcheck of the gradient itself: of (inputs, incoming gradients) → grad(f(inputs), inputs,
/// incoming gradients, create_graph).
[[nodiscard]] std::string gradgradcheck(const Function& f, const std::vector<Tensor>& inputs,
                                        const GradcheckOptions& o = {});

/// A callable of one to four tensors, or of a vector of them, that returns a tensor or several, as
/// a Function.
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

/// CHECK_GRAD(f, x, …): the gradient of f, and the gradient of that gradient, at inputs of float64.
#define CHECK_GRAD(f, ...)                                                                   \
  do {                                                                                       \
    CHECK(::braid::test::gradcheck(::braid::test::function_of(f), {__VA_ARGS__}) == "");     \
    CHECK(::braid::test::gradgradcheck(::braid::test::function_of(f), {__VA_ARGS__}) == ""); \
  } while (false)
