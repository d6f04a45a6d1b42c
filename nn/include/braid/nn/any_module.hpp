#pragma once
#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <braid/core/check_model.hpp>
#include <braid/nn/layer.hpp>
#include <braid/nn/ordered_map.hpp>
#include <braid/nn/walks.hpp>

// Modules whose types are known at run time only.
namespace braid::nn {

namespace detail {
[[noreturn]] void wrong_module(std::string_view expected, std::string_view got);
[[noreturn]] void wrong_call(std::string_view module, std::size_t tensors);
[[noreturn]] void no_module();

/// The type of the parameter of a function object that is not generic; void for another one.
template <class C, class R, class A> A parameter_of(R (C::*)(A));
template <class C, class R, class A> A parameter_of(R (C::*)(A) const);
template <class F> struct ParameterOf {
  using type = void;
};
template <class F>
  requires requires { parameter_of(&F::operator()); }
struct ParameterOf<F> {
  using type = std::remove_cvref_t<decltype(parameter_of(&F::operator()))>;
};
}  // namespace detail

/// A module of any type, called with one to three tensors and giving a tensor. In a walk it is the
/// module that it holds, so names, state dicts and prints are those of that module. A copy copies
/// the module.
///
///     std::vector<nn::AnyModule> layers;
///     for (const int width : {64, 32}) {
///       layers.push_back(nn::Linear(width, width)), layers.push_back(nn::ReLU());
///     }
class AnyModule {
 public:
  /// Holds nothing: a call throws ArgumentError.
  AnyModule() noexcept = default;
  template <IsModule M>
    requires(!std::same_as<M, AnyModule>)
  AnyModule(M module) : held_(std::make_unique<Of<M>>(std::move(module))) {}
  AnyModule(const AnyModule& other) : held_(other.held_ ? other.held_->copy() : nullptr) {}
  AnyModule(AnyModule&&) noexcept = default;
  AnyModule& operator=(AnyModule other) noexcept {
    held_ = std::move(other.held_);
    return *this;
  }
  ~AnyModule() = default;

  /// Calls the module. Throws ArgumentError if it takes another number of tensors, or does not give
  /// a tensor: then call get<M>().
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    return held().call({&x, nullptr, nullptr});
  }
  [[nodiscard]] Tensor operator()(const Tensor& x, const Tensor& y) const {
    return held().call({&x, &y, nullptr});
  }
  [[nodiscard]] Tensor operator()(const Tensor& x, const Tensor& y, const Tensor& z) const {
    return held().call({&x, &y, &z});
  }
  [[nodiscard]] Tensor forward(const Tensor& x) const { return (*this)(x); }

  [[nodiscard]] bool empty() const noexcept { return !held_; }
  /// The module, or null if it is of another type.
  template <class M> [[nodiscard]] M* get_if() noexcept {
    return held_ && held_->type() == typeid(M) ? &static_cast<Of<M>&>(*held_).module : nullptr;
  }
  template <class M> [[nodiscard]] const M* get_if() const noexcept {
    return const_cast<AnyModule*>(this)->get_if<M>();
  }
  /// The module. Throws ArgumentError if it is of another type.
  template <class M> [[nodiscard]] M& get() {
    if (M* const module = get_if<M>()) return *module;
    detail::wrong_module(::braid::type_name<M>(), type_name());
  }
  template <class M> [[nodiscard]] const M& get() const {
    return const_cast<AnyModule*>(this)->get<M>();
  }
  /// `Linear`; empty if it holds nothing.
  [[nodiscard]] std::string type_name() const { return held_ ? held_->name() : std::string(); }
  /// See nn::register_forward_hook. Throws ArgumentError if the library does not see the module's
  /// calls.
  ForwardHookHandle register_forward_hook(ForwardHookFunction hook);

  using braid_erased = void;
  void braid_fill(const tree::detail::Fill& fill, const tree::Name& name) {
    if (held_) held_->fill(fill, name);
  }
  template <class F> void braid_apply(const F& f) {
    using M = typename detail::ParameterOf<F>::type;
    static_assert(
        !std::is_void_v<M>,
        "braid: apply(model, f) on a model with nn::AnyModule needs an f with one type of "
        "module: [](nn::Linear& layer) {…}");
    if (M* const module = get_if<M>()) f(*module);
  }

 private:
  template <class M, class... X> static constexpr bool returns_tensor() {
    if constexpr (!braid::detail::Calls<M, X...>) return false;
    else return std::convertible_to<std::invoke_result_t<const M&, const X&...>, Tensor>;
  }
  struct Arguments {
    const Tensor *x, *y, *z;
  };
  struct Held {
    Held() = default;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    virtual ~Held() = default;
    virtual std::unique_ptr<Held> copy() const = 0;
    virtual const std::type_info& type() const noexcept = 0;
    virtual std::string name() const = 0;
    virtual void fill(const tree::detail::Fill& fill, const tree::Name& name) = 0;
    virtual Tensor call(const Arguments& a) const = 0;
    virtual Module* hooked() noexcept = 0;
  };
  template <class M> struct Of final : Held {
    M module;
    explicit Of(M m) : module(std::move(m)) { check_tree<M>(); }
    std::unique_ptr<Held> copy() const override {
      if constexpr (std::is_copy_constructible_v<M>) return std::make_unique<Of>(M(module));
      else detail::wrong_module("module that can be copied", name());
    }
    const std::type_info& type() const noexcept override { return typeid(M); }
    std::string name() const override { return ::braid::type_name<M>(); }
    void fill(const tree::detail::Fill& fill, const tree::Name& name) override {
      fill(name, module);
    }
    Tensor call(const Arguments& a) const override {
      if (a.z) return called(*a.x, *a.y, *a.z);
      return a.y ? called(*a.x, *a.y) : called(*a.x);
    }
    Module* hooked() noexcept override {
      if constexpr (requires { typename M::CallsHooks; }) return &module;
      else return nullptr;
    }
    template <class... X> Tensor called(const X&... x) const {
      if constexpr (returns_tensor<M, X...>()) return module(x...);
      else detail::wrong_call(name(), sizeof...(X));
    }
  };
  [[nodiscard]] const Held& held() const {
    if (!held_) detail::no_module();
    return *held_;
  }

  std::unique_ptr<Held> held_;
};

/// Modules of different types, by number. A std::vector of one type is a tree too.
///
///     nn::ModuleList list{nn::Linear(8, 8), nn::ReLU()};
///     list.push_back(nn::Linear(8, 2));
using ModuleList = std::vector<AnyModule>;

/// Modules of different types, by name, in the order of insertion.
///
///     nn::ModuleDict heads{{"class", nn::Linear(8, 10)}, {"box", nn::Linear(8, 4)}};
///     heads["box"](x);
using ModuleDict = OrderedMap<AnyModule>;

}  // namespace braid::nn
