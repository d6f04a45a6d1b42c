#pragma once
#include <concepts>
#include <string_view>
#include <type_traits>
#include <vector>

#include <braid/nn/module.hpp>
#include <braid/nn/parameter.hpp>

// Lines that are right in LibTorch. Each is a compile error that says what to write.
namespace braid::nn {

namespace detail {
template <class T> constexpr void refuse_to_register() {
  static_assert(!sizeof(T*),
                "braid: a field is registered by its name in BRAID_FIELDS(fc1, fc2), and "
                "initialised where it is declared: nn::Linear fc1{4, 2};");
}
}  // namespace detail

template <class M> M register_module(std::string_view, M module) {
  detail::refuse_to_register<M>();
  return module;
}
template <class T> Parameter register_parameter(std::string_view, const T&, bool = true) {
  detail::refuse_to_register<T>();
  return {};
}
template <class T> Buffer register_buffer(std::string_view, const T&) {
  detail::refuse_to_register<T>();
  return {};
}

}  // namespace braid::nn

namespace braid {
using nn::register_buffer;
using nn::register_module;
using nn::register_parameter;
}  // namespace braid

namespace braid::optim::detail {

/// Arguments of an optimizer: a model with Options, or parameters with a number.
template <class P, class O, class Options>
concept WrongArguments =
    (std::same_as<O, Options> && (tree::Struct<P> || std::is_base_of_v<nn::Module, P>)) ||
    (std::is_arithmetic_v<O> && std::convertible_to<const P&, std::vector<Tensor>>);
template <class P> constexpr void refuse_arguments() {
  constexpr bool kParameters = std::convertible_to<const P&, std::vector<Tensor>>;
  static_assert(kParameters,
                "braid: an optimizer takes the parameters of a model: write parameters(model)");
  static_assert(!kParameters, "braid: the options of an optimizer have names: write {.lr = 1e-3}");
}

}  // namespace braid::optim::detail
