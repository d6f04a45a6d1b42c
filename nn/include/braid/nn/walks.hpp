#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/core/state_dict.hpp>
#include <braid/core/tree.hpp>
#include <braid/nn/module.hpp>

// What is done to a model: each is one walk over a tree, so that it works for a layer, a struct, a
// vector of models, DataParallel, alike. Each throws ArgumentError if a field that holds parameters
// or modules is missing from a BRAID_FIELDS (see tree::flatten).
namespace braid {

enum class StripPrefix : std::uint8_t {
  /// `module.`, which DataParallel puts before every name, is taken off or put on where all keys
  /// differ by it
  automatic,
  never
};

struct LoadOptions {
  StripPrefix strip_prefix = StripPrefix::automatic;
  /// false: keys that are missing or unexpected are reported, not thrown; shapes and dtypes must
  /// fit all the same
  bool strict = true;
  bool tensors = false;  ///< plain Tensor fields are loaded too
};

struct StateDictOptions {
  bool tensors = false;  ///< plain Tensor fields too
};

/// What load_state_dict did.
struct LoadReport {
  /// parameters and buffers written; a tied one counts under each name
  std::size_t loaded = 0;
  /// the prefix taken off the dict's keys, or put before them; else empty
  std::string stripped, added;
  std::vector<std::string> missing, unexpected;  ///< only filled unless strict
};

namespace detail {
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
[[nodiscard]] std::vector<Tensor> tensors_of(const tree::Flat& flat, tree::Kind kind);
[[nodiscard]] NamedTensors named_tensors_of(const tree::Flat& flat, tree::Kind kind);
/// Throws ArgumentError, naming `op`, for a tree whose tensors are all plain, none of which is
/// asked for.
void check_saves(const char* op, const tree::Flat& flat, bool tensors, const char* signature);
[[nodiscard]] StateDict state_of(const tree::Flat& flat, const StateDictOptions& options,
                                 const char* signature);
LoadReport load_state(const tree::Flat& flat, std::span<const StateDict::value_type> dict,
                      const LoadOptions& options, const char* signature);
void move_leaves(const tree::Flat& flat, std::optional<Device> device, std::optional<DType> dtype);
void clone_leaves(const tree::Flat& flat);
void set_training(const tree::Flat& flat, bool on);
void clear_gradients(const tree::Flat& flat);
void require_gradients(const tree::Flat& flat, bool on);
[[nodiscard]] std::int64_t count_parameters(const tree::Flat& flat);

/// f(module) for every module that f takes, parts before wholes.
template <class F> struct Apply {
  const F& f;
  template <class T> void operator()(const tree::Name&, T& node) const {
    if constexpr (!tree::IsTensor<std::remove_const_t<T>> && tree::detail::Holds<T>) {
      tree::detail::children(node, *this);
      if constexpr (nn::IsModule<std::remove_const_t<T>> && std::invocable<const F&, T&>) f(node);
    }
  }
};
/// See zero_grad.
struct ClearOthers {
  template <class T> void operator()(const tree::Name&, const T& node) const {
    if constexpr (!tree::IsTensor<T> && tree::detail::Holds<T>) {
      if constexpr (requires { node.braid_clear_gradients(); }) node.braid_clear_gradients();
      tree::detail::children(node, *this);
    }
  }
};
}  // namespace detail

/// The nn::Parameters in order of the fields, whether they require a gradient or not; a tied one
/// once. In a replica: the replica's tensors.
template <class M> [[nodiscard]] std::vector<Tensor> parameters(const M& m) {
  check_tree<M>();
  return detail::tensors_of(tree::flatten(m), tree::Kind::parameter);
}
/// The same with their paths; a tied one under its first name.
template <class M>
[[nodiscard]] std::vector<std::pair<std::string, Tensor>> named_parameters(const M& m) {
  check_tree<M>();
  return detail::named_tensors_of(tree::flatten(m), tree::Kind::parameter);
}
/// The nn::Buffers in order of the fields.
template <class M> [[nodiscard]] std::vector<Tensor> buffers(const M& m) {
  check_tree<M>();
  return detail::tensors_of(tree::flatten(m), tree::Kind::buffer);
}
template <class M>
[[nodiscard]] std::vector<std::pair<std::string, Tensor>> named_buffers(const M& m) {
  check_tree<M>();
  return detail::named_tensors_of(tree::flatten(m), tree::Kind::buffer);
}
/// How many numbers the parameters have; tied ones count once.
template <class M> [[nodiscard]] std::int64_t parameter_count(const M& m) {
  check_tree<M>();
  return detail::count_parameters(tree::flatten(m));
}

/// Parameters and buffers by path, in order of the fields, sharing their numbers and without
/// history; tied ones under each name. Plain Tensor fields are left out, unless options.tensors
/// asks for them. Throws ArgumentError if two paths are equal (a map's key with a dot can do that),
/// and for a tree that has plain tensors alone, none of which is asked for.
template <class M>
[[nodiscard]] StateDict state_dict(const M& m, const StateDictOptions& options = {}) {
  check_tree<M>();
  return detail::state_of(tree::flatten(m), options, detail::signature<M>());
}

/// Writes the dict's numbers into the parameters and buffers there are: optimizers and ties made
/// before stay right. A dict on another device is copied over.
///
/// Throws    ArgumentError that lists every missing, unexpected, misshapen and mistyped key, and as
///           state_dict for a tree of plain tensors; then nothing was changed
/// Of two keys of a tied parameter that hold different numbers the later field's is kept, as in
/// PyTorch.
template <class M>
LoadReport load_state_dict(M& m, std::span<const StateDict::value_type> dict,
                           const LoadOptions& options = {}) {
  check_tree<M>();
  return detail::load_state(tree::flatten(m), dict, options, detail::signature<M>());
}

/// Moves a tree, in place. Parameters and buffers keep their identity, so that optimizers and ties
/// made before stay right, and take their gradients along;
/// plain Tensor fields become Tensor::to's result. dtype applies to floating point tensors. Either
/// all are moved or, on an exception, none. Throws DeviceError, OutOfMemoryError; DTypeError if
/// dtype is not floating point.
template <class T> void to(T& t, Device device, std::optional<DType> dtype = {}) {
  static_assert(!std::is_const_v<T>,
                "braid: to(tree, device) changes the tree, which is const here");
  check_tree<T>();
  detail::move_leaves(tree::flatten(t), device, dtype);
}
template <class T> void to(T& t, DType dtype) {
  static_assert(!std::is_const_v<T>,
                "braid: to(tree, dtype) changes the tree, which is const here");
  check_tree<T>();
  detail::move_leaves(tree::flatten(t), {}, dtype);
}

/// A tree with numbers of its own, ties kept, plain fields copied. Parameters and buffers are
/// leaves without gradient; plain Tensors are Tensor::clone's.
template <class T> [[nodiscard]] T clone(const T& t) {
  check_tree<T>();
  T copy = tree::share(t);
  detail::clone_leaves(tree::flatten(copy));
  return copy;
}

/// Sets `training` of every module.
template <class M> void set_training(M& m, bool on) {
  check_tree<M>();
  detail::set_training(tree::flatten(m), on);
}
template <class M> void train(M& m) { braid::set_training(m, true); }
template <class M> void eval(M& m) { braid::set_training(m, false); }

/// Removes the gradients of the parameters. In a replica it has no effect, and warns. A struct with
/// more gradients than those of its fields' parameters (DataParallel with Update::local) removes
/// them in `braid_clear_gradients() const`.
template <class M> void zero_grad(const M& m) {
  check_tree<M>();
  detail::clear_gradients(tree::flatten(m));
  detail::ClearOthers()(tree::Name(), m);
}

/// Freezes the parameters, or thaws them. Throws AutogradError or DTypeError, and changes nothing,
/// if one is not a leaf or not floating point.
template <class M> void requires_grad_(const M& m, bool on = true) {
  check_tree<M>();
  detail::require_gradients(tree::flatten(m), on);
}

/// f(module) for every module that f can be called with, parts before wholes:
/// `apply(model, [](nn::Linear& layer) { … })`.
template <class M, class F>
  requires Tree<M> && (!std::invocable<M&, F>)
void apply(M& m, F&& f) {
  (void)tree::flatten(m);  // for its checks
  detail::Apply<std::remove_reference_t<F>>{f}(tree::Name(), m);
}

}  // namespace braid
