#pragma once
#include <concepts>
#include <iosfwd>
#include <string>

#include <braid/core/tree.hpp>
#include <braid/nn/internal/module_record.hpp>
#include <braid/nn/parameter.hpp>

namespace braid::nn {

/// Base class of every layer and model. It has no member functions: operations on a model are free
/// functions, such as `train(m)` and `to(m, device)` (walks.hpp), so that a model's own fields and
/// functions never hide them.
///
///     struct Classifier : nn::Module {
///       nn::Linear hidden{784, 128}, output{128, 10};
///       Tensor operator()(const Tensor& x) const { return output(relu(hidden(x))); }
///       BRAID_FIELDS(hidden, output)
///     };
///
/// The first walk over a model (parameters, to, DataParallel, …) tells each module its path. An
/// error that a layer throws begins with it: `output: linear: expected …`.
struct Module {
  bool training = true;

  Module() noexcept = default;

  detail::ModuleRecord record_;  ///< for the library
};

/// A type that derives from Module.
template <class M>
concept IsModule = std::derived_from<M, Module>;

namespace detail {
template <class M> bool* training_of(void* object) { return &static_cast<M*>(object)->training; }
template <class M> std::atomic<const std::string*>* path_of(void* object) {
  return &static_cast<M*>(object)->Module::record_.path;
}
template <class M> std::string extra_of(const void* object) {
  return static_cast<const M*>(object)->extra();
}
/// Prints the structs of a tree in the form in which PyTorch prints nested modules.
void print_module(std::ostream& out, const tree::Flat& flat);
}  // namespace detail

/// Prints a module as PyTorch does:
/// `Model(\n  (fc): Linear(in_features=5, out_features=2, bias=true)\n)`. A layer provides the text
/// inside its brackets with a member `std::string extra() const`.
template <class M>
  requires std::is_base_of_v<Module, M>
std::ostream& operator<<(std::ostream& out, const M& module) {
  check_tree<M>();
  detail::print_module(out, tree::flatten(module));
  return out;
}

}  // namespace braid::nn

// In a layer of the library: declares forward, and the call, which runs forward, puts the layer's
// path before the message of an error, and runs the hooks (layer.hpp). BRAID_FORWARD_SUM is another
// overload of both.
#define BRAID_FORWARD(Result, parameters) \
  BRAID_FORWARD_SUM(Result, parameters)   \
  using CallsHooks = void;
#define BRAID_FORWARD_SUM(Result, parameters)    \
  [[nodiscard]] Result forward parameters const; \
  [[nodiscard]] Result operator() parameters const;

template <class M>
  requires std::is_base_of_v<braid::nn::Module, M>
struct braid::tree::Hooks<M> {
  static constexpr bool is_public = braid::nn::IsModule<M>;
  static constexpr bool* (*training)(void*) = [] {
    if constexpr (is_public) return &braid::nn::detail::training_of<M>;
    else return static_cast<bool* (*)(void*)>(nullptr);
  }();
  static constexpr std::atomic<const std::string*>* (*path)(void*) = [] {
    if constexpr (is_public) return &braid::nn::detail::path_of<M>;
    else return static_cast<std::atomic<const std::string*>* (*)(void*)>(nullptr);
  }();
  static constexpr std::string (*extra)(const void*) = [] {
    if constexpr (requires(const M& m) {
                    { m.extra() } -> std::convertible_to<std::string>;
                  })
      return &braid::nn::detail::extra_of<M>;
    else return static_cast<std::string (*)(const void*)>(nullptr);
  }();
};
