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

// Operations on models: each is one walk over a tree. They work for a layer, a struct, a vector of
// models and DataParallel alike. Each throws ArgumentError if a field that holds parameters or
// modules is missing from a BRAID_FIELDS (see tree::flatten).
namespace braid {

/// Whether load_state_dict adapts the keys of a dict from a DataParallel.
enum class StripPrefix : std::uint8_t {
  /// If all keys of the dict differ from the model's keys only by the prefix `module.`, the prefix
  /// is removed or added. DataParallel puts it before every name.
  automatic,
  never
};

/// The options of load_state_dict.
struct LoadOptions {
  StripPrefix strip_prefix = StripPrefix::automatic;
  /// false: missing and unexpected keys are reported, not thrown. Shapes and dtypes must fit
  /// anyway.
  bool strict = true;
  bool tensors = false;  ///< also load plain Tensor fields
};

/// The options of state_dict.
struct StateDictOptions {
  bool tensors = false;  ///< also include plain Tensor fields
};

/// The result of load_state_dict.
struct LoadReport {
  /// parameters and buffers written; a tied one counts once for each of its names
  std::size_t loaded = 0;
  /// the prefix that was removed from the dict's keys, or added to them; else empty
  std::string stripped, added;
  std::vector<std::string> missing, unexpected;  ///< empty if strict
};

namespace detail {
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
[[nodiscard]] std::vector<Tensor> tensors_of(const tree::Flat& flat, tree::Kind kind);
[[nodiscard]] NamedTensors named_tensors_of(const tree::Flat& flat, tree::Kind kind);
/// Throws ArgumentError, naming `op`, if all tensors of the tree are plain and `tensors` is false.
void check_saves(const char* op, const tree::Flat& flat, bool tensors, const char* signature);
[[nodiscard]] StateDict state_of(const tree::Flat& flat, const StateDictOptions& options,
                                 const char* signature);
LoadReport load_state(const tree::Flat& flat, std::span<const StateDict::value_type> dict,
                      const LoadOptions& options, const char* signature);
void move_leaves(const tree::Flat& flat, std::optional<Device> device, std::optional<DType> dtype);
void clone_leaves(const tree::Flat& flat);
void set_training(const tree::Flat& flat, bool on);
/// Sets `training` of one module; captured steps in which it is called are recorded again.
void set_mode(bool* training, bool on);
void clear_gradients(const tree::Flat& flat);
void require_gradients(const tree::Flat& flat, bool on);
[[nodiscard]] std::int64_t count_parameters(const tree::Flat& flat);

/// Calls f(module) for every module that f accepts, children before their parent.
template <class F> struct Apply {
  const F& f;
  template <class T> void operator()(const tree::Name&, T& node) const {
    if constexpr (tree::Erased<std::remove_const_t<T>>) {
      node.braid_apply(f);
    } else if constexpr (!tree::IsTensor<std::remove_const_t<T>> && tree::detail::Holds<T>) {
      tree::detail::children(node, *this);
      if constexpr (nn::IsModule<std::remove_const_t<T>> && std::invocable<const F&, T&>) f(node);
    }
  }
};
/// Calls braid_clear_gradients of every struct that has it; see zero_grad.
struct ClearOthers {
  template <class T> void operator()(const tree::Name&, const T& node) const {
    if constexpr (!tree::IsTensor<T> && !tree::Erased<T> && tree::detail::Holds<T>) {
      if constexpr (requires { node.braid_clear_gradients(); }) node.braid_clear_gradients();
      tree::detail::children(node, *this);
    }
  }
};
}  // namespace detail

/// Returns the nn::Parameters in field order, whether or not they require a gradient; a tied one
/// once. In a replica these are the replica's tensors.
template <class M> [[nodiscard]] std::vector<Tensor> parameters(const M& m) {
  check_tree<M>();
  return detail::tensors_of(tree::flatten(m), tree::Kind::parameter);
}
/// Returns the parameters with their paths; a tied one under its first name.
template <class M>
[[nodiscard]] std::vector<std::pair<std::string, Tensor>> named_parameters(const M& m) {
  check_tree<M>();
  return detail::named_tensors_of(tree::flatten(m), tree::Kind::parameter);
}
/// Returns the nn::Buffers in field order.
template <class M> [[nodiscard]] std::vector<Tensor> buffers(const M& m) {
  check_tree<M>();
  return detail::tensors_of(tree::flatten(m), tree::Kind::buffer);
}
template <class M>
[[nodiscard]] std::vector<std::pair<std::string, Tensor>> named_buffers(const M& m) {
  check_tree<M>();
  return detail::named_tensors_of(tree::flatten(m), tree::Kind::buffer);
}
/// Returns how many numbers the parameters have in all; a tied one counts once.
///
///     print(parameter_count(model), " numbers");
template <class M> [[nodiscard]] std::int64_t parameter_count(const M& m) {
  check_tree<M>();
  return detail::count_parameters(tree::flatten(m));
}

/// Returns the parameters and buffers by path, in field order. They share the model's memory and
/// are detached from the graph; a tied one is listed under each of its names. Plain Tensor fields
/// are included only with options.tensors.
///
/// Throws    ArgumentError if two paths are equal (possible with a map key that contains a dot),
///           and if the tree has only plain tensors and options.tensors is false
template <class M>
[[nodiscard]] StateDict state_dict(const M& m, const StateDictOptions& options = {}) {
  check_tree<M>();
  return detail::state_of(tree::flatten(m), options, detail::signature<M>());
}

/// Writes the dict's numbers into the existing parameters and buffers, so optimizers and ties made
/// before remain valid. Copies from another device if necessary.
///
/// Throws    ArgumentError that lists every missing and unexpected key and every wrong shape and
///           dtype; also, as state_dict, for a tree of plain tensors. Then nothing was changed
/// Ties      if two keys of a tied parameter hold different numbers, those of the later field are
///           kept, as in PyTorch
///
///     const StateDict dict = load_safetensors("net.safetensors").tensors;
///     load_state_dict(model, dict);
///     const LoadReport report = load_state_dict(model, dict, {.strict = false});
///     for (const std::string& key : report.missing) print("missing: ", key);
template <class M>
LoadReport load_state_dict(M& m, std::span<const StateDict::value_type> dict,
                           const LoadOptions& options = {}) {
  check_tree<M>();
  return detail::load_state(tree::flatten(m), dict, options, detail::signature<M>());
}

/// Moves a tree to a device and converts its floating point tensors to a dtype, in place.
/// Parameters and buffers keep their identity, so optimizers and ties made before remain valid;
/// their gradients are moved too. Plain Tensor fields become the result of Tensor::to. Either all
/// tensors are moved or, if an exception is thrown, none.
///
/// Throws    DeviceError, OutOfMemoryError; DTypeError if dtype is not floating point
///
///     to(model, "cuda:0");
///     to(model, DType::bfloat16);
template <class T> void to(T& t, Device device, std::optional<DType> dtype = {}) {
  check_not_const<T>();
  check_tree<T>();
  detail::move_leaves(tree::flatten(t), device, dtype);
}
template <class T> void to(T& t, DType dtype) {
  check_not_const<T>();
  check_tree<T>();
  detail::move_leaves(tree::flatten(t), {}, dtype);
}

/// Returns a deep copy of a tree; ties are kept and plain fields copied. Parameters and buffers
/// become leaves without a gradient; plain Tensors are copied by Tensor::clone.
///
///     const Net before = clone(model);
template <class T> [[nodiscard]] T clone(const T& t) {
  check_tree<T>();
  T copy = tree::share(t);
  detail::clone_leaves(tree::flatten(copy));
  return copy;
}

/// Sets `training` of every module; train(m) and eval(m) set it to true and false.
template <class M> void set_training(M& m, bool on) {
  check_not_const<M>();
  check_tree<M>();
  detail::set_training(tree::flatten(m), on);
}
template <class M> void train(M& m) {
  check_tree<M>();
  braid::set_training(m, true);
}
template <class M> void eval(M& m) {
  check_tree<M>();
  braid::set_training(m, false);
}

/// While it exists, a model is in evaluation mode. The destructor gives every module its mode back
/// that it had, so a part that was frozen in eval() stays so. The model must outlive the guard and
/// must not gain or lose modules meanwhile. It does not turn off gradients; add a NoGrad for that.
///
///     const EvalGuard evaluating(model);
///     const NoGrad guard;
///     const Tensor scores = model(images);
class EvalGuard {
 public:
  template <class M> explicit EvalGuard(M& m) : EvalGuard((check_tree<M>(), tree::flatten(m))) {
    check_not_const<M>();
  }
  ~EvalGuard() {
    for (const auto& [mode, before] : modes_) detail::set_mode(mode, before);
  }
  EvalGuard(const EvalGuard&) = delete;
  EvalGuard& operator=(const EvalGuard&) = delete;

 private:
  explicit EvalGuard(const tree::Flat& flat);
  std::vector<std::pair<bool*, bool>> modes_;
};

/// Removes the gradients of the parameters. In a replica it has no effect and warns. A struct that
/// holds gradients besides those of its fields' parameters (DataParallel with a
/// ReplicatedOptimizer)
/// removes them in `braid_clear_gradients() const`.
template <class M> void zero_grad(const M& m) {
  check_tree<M>();
  detail::clear_gradients(tree::flatten(m));
  detail::ClearOthers()(tree::Name(), m);
}

/// Sets requires_grad of all parameters: false freezes them.
///
/// Throws    AutogradError if one is not a leaf, or DTypeError if one is not floating point; then
///           nothing was changed
///
///     requires_grad_(model.fc, false);  // only the other layers are trained
template <class M> void requires_grad_(const M& m, bool on = true) {
  check_tree<M>();
  detail::require_gradients(tree::flatten(m), on);
}

/// Calls f(module) for every module that f can be called with, children before their parent.
///
///     apply(model, [](nn::Linear& layer) { nn::init::xavier_uniform_(layer.weight); });
template <class M, class F>
  requires Tree<M> && (!detail::HasResult<M&, F>)
void apply(M& m, F&& f) {
  (void)tree::flatten(m);  // for its checks
  detail::Apply<std::remove_reference_t<F>>{f}(tree::Name(), m);
}

}  // namespace braid
