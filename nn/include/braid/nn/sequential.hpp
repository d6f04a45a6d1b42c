#pragma once
#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <braid/core/check_model.hpp>
#include <braid/nn/any_module.hpp>
#include <braid/nn/internal/fused.hpp>
#include <braid/nn/layer.hpp>
#include <braid/nn/parameter_dict.hpp>

namespace braid::nn {

namespace detail {
/// True if layer I can be called with X, and each later layer with the result of the one before.
template <class Layers, std::size_t I, class... X> constexpr bool chains() {
  if constexpr (I == std::tuple_size_v<Layers>) return sizeof...(X) == 1;
  else if constexpr (!braid::detail::Calls<std::tuple_element_t<I, Layers>, X...>) return false;
  else
    return chains<Layers, I + 1,
                  std::remove_cvref_t<
                      std::invoke_result_t<const std::tuple_element_t<I, Layers>&, const X&...>>>();
}
/// A layer that cannot be called, and the types of the arguments.
template <class Layer, class... X> struct WrongCall {
  static constexpr void check() { braid::detail::check_call<Layer, X...>(); }
};
/// The first WrongCall where chains() is false.
template <class Layers, std::size_t I, class... X> constexpr auto wrong_call() {
  if constexpr (I == std::tuple_size_v<Layers>) return WrongCall<Layers, X...>();
  else if constexpr (!braid::detail::Calls<std::tuple_element_t<I, Layers>, X...>)
    return WrongCall<std::tuple_element_t<I, Layers>, X...>();
  else
    return wrong_call<Layers, I + 1,
                      std::remove_cvref_t<std::invoke_result_t<
                          const std::tuple_element_t<I, Layers>&, const X&...>>>();
}
}  // namespace detail

/// Applies layers in sequence. Takes the arguments of the first layer. The fields are named 0, 1,
/// …; layer i is `std::get<i>(model.layers)`. `Sequential{Sequential{…}}` is the inner one, because
/// C++ copies it. A Linear and the ReLU or GELU after it are one op, with the same bits.
///
///     nn::Sequential model{nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 10)};
template <class... L> struct Sequential : Module {
  std::tuple<L...> layers;

  Sequential()
    requires(sizeof...(L) == 0 || (std::default_initializable<L> && ...))
  = default;
  explicit Sequential(L... l)
    requires(sizeof...(L) > 0)
      : layers(std::move(l)...) {}

  template <class... X>
    requires(detail::chains<std::tuple<L...>, 0, X...>())
  [[nodiscard]] auto forward(const X&... x) const {
    return run<0>(x...);
  }
  template <class... X>
    requires(detail::chains<std::tuple<L...>, 0, X...>())
  [[nodiscard]] auto operator()(const X&... x) const {
    return detail::call(*this, [&] { return run<0>(x...); }, x...);
  }
  using CallsHooks = void;
  /// A compile error.
  template <class... X> braid::detail::NotCallable operator()(const X&...) const {
    decltype(detail::wrong_call<std::tuple<L...>, 0, X...>())::check();
    return {};
  }

  // What BRAID_FIELDS generates, for a parameter pack.
  auto braid_fields() {
    return std::apply([](auto&... l) { return std::tie(l...); }, layers);
  }
  auto braid_fields() const {
    return std::apply([](auto&... l) { return std::tie(l...); }, layers);
  }
  static std::string_view braid_names() {
    static const std::string_view names = tree::detail::numbered(sizeof...(L));
    return names;
  }
  void braid_owner() const {}

 private:
  template <std::size_t I, class... X> auto run(const X&... x) const {
    if constexpr (I == sizeof...(L)) {
      return (x, ...);
    } else {
      if constexpr (fuses<I>() && sizeof...(X) == 1) {
        const auto& [first, second] = std::tie(std::get<I>(layers), std::get<I + 1>(layers));
        if (detail::may_fuse(first, second))
          return run<I + 2>(detail::call_fused(first, second, x...));
      }
      return run<I + 1>(std::get<I>(layers)(x...));
    }
  }
  template <std::size_t I> static constexpr bool fuses() {
    if constexpr (I + 1 < sizeof...(L))
      return detail::Fusible<std::tuple_element_t<I, std::tuple<L...>>,
                             std::tuple_element_t<I + 1, std::tuple<L...>>>;
    else return false;
  }
};
template <class... L> Sequential(L...) -> Sequential<L...>;

/// Layers that are added at run time: applies them in sequence, to one tensor. Without layers it
/// returns x. Fields and names as nn::Sequential of layers known at compile time.
///
///     nn::Sequential model;
///     model.push_back(nn::Linear(784, 128));
///     model.push_back("activation", nn::ReLU());
template <> struct Sequential<> : Module {
  ModuleDict layers;

  Sequential() = default;
  /// Named by its number.
  void push_back(AnyModule layer);
  /// Throws ArgumentError if the name exists already.
  void push_back(std::string name, AnyModule layer);
  [[nodiscard]] std::size_t size() const noexcept { return layers.size(); }
  [[nodiscard]] bool is_empty() const noexcept { return layers.empty(); }
  /// Throws IndexError unless i < size().
  [[nodiscard]] AnyModule& operator[](std::size_t i);
  [[nodiscard]] const AnyModule& operator[](std::size_t i) const {
    return (*const_cast<Sequential*>(this))[i];
  }
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_UNNAMED_FIELD(layers)
};

}  // namespace braid::nn
