#pragma once
#include <any>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>

// Ops of a program in LibTorch's form, and LibTorch's spelling of grad and backward. The library's
// own ops are recorded by `record` (autograd.hpp), which makes no lists: docs/guides/custom_op.md.
namespace braid {
namespace autograd { class AutogradContext; }

namespace detail {
/// Whether each argument of a Function's forward is a tensor (a parameter is one), and the tensors.
struct FunctionArguments {
  std::vector<bool> is_tensor;
  std::vector<Tensor> tensors;
  template <class T> void add(const T& argument) {
    if constexpr (std::derived_from<T, Tensor>) add_tensor(argument);
    else add_other();
  }
  template <class T> void add(const std::optional<T>& argument) {
    if constexpr (!std::derived_from<T, Tensor>) add_other();
    else if (argument) add_tensor(*argument);
    else add_tensor(Tensor());
  }
  void add_tensor(const Tensor& t);
  void add_other();
};
using FunctionBackward = std::vector<Tensor> (*)(autograd::AutogradContext*, std::vector<Tensor>);
/// Records the outputs of a forward that has run.
void record_function(const char* name, const std::shared_ptr<autograd::AutogradContext>& context,
                     const FunctionArguments& arguments, std::vector<Tensor>& outputs,
                     FunctionBackward backward);
/// The name of a type, which lives as long as the program.
template <class T> const char* function_name() {
  static const std::string& name = *new std::string(type_name(typeid(T).name()));
  return name.c_str();
}
}  // namespace detail
}  // namespace braid

namespace braid::autograd {

using Variable = Tensor;
using variable_list = std::vector<Tensor>;
using tensor_list = std::vector<Tensor>;

/// A value that forward keeps for backward, of any type that can be copied. The conversions throw
/// ArgumentError for a value of another kind.
class SavedValue {
 public:
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, SavedValue>)
  SavedValue& operator=(T&& value) {
    using V = std::decay_t<T>;
    if constexpr (std::is_arithmetic_v<V>) value_ = Scalar(value);
    else if constexpr (std::is_convertible_v<T, std::string>)
      value_ = std::string(std::forward<T>(value));
    else if constexpr (std::derived_from<V, Tensor>) value_ = Tensor(std::forward<T>(value));
    else value_ = std::forward<T>(value);
    return *this;
  }
  [[nodiscard]] double toDouble() const;
  [[nodiscard]] std::int64_t toInt() const;  ///< a double is truncated
  [[nodiscard]] bool toBool() const;
  [[nodiscard]] Scalar toScalar() const;
  [[nodiscard]] Tensor toTensor() const;
  [[nodiscard]] std::vector<std::int64_t> toIntVector() const;
  [[nodiscard]] const std::string& toStringRef() const;
  /// The value, which must have been assigned as this type; a number is a Scalar.
  template <class T> [[nodiscard]] const T& get() const {
    if (const T* const value = std::any_cast<T>(&value_)) return *value;
    other_kind();
  }

 private:
  [[noreturn]] void other_kind() const;
  std::any value_;
};

/// What a Function's forward passes to its backward.
class AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;
  AutogradContext& operator=(const AutogradContext&) = delete;

  /// Numbers and others; tensors are better saved by save_for_backward, which detects changes.
  std::unordered_map<std::string, SavedValue> saved_data;

  /// Keeps inputs and outputs of forward for backward. A later call replaces the earlier one.
  void save_for_backward(variable_list tensors);
  /// In backward: the saved tensors. Throws AutogradError if one was changed in place since.
  [[nodiscard]] variable_list get_saved_variables() const;
  /// In forward: these inputs were changed in place; it must return them. Function::apply throws
  /// AutogradError for a leaf that requires a gradient, and for a view.
  void mark_dirty(const variable_list& inputs);
  /// In forward: these outputs have no gradient. Integer outputs never have.
  void mark_non_differentiable(const variable_list& outputs);
  /// False: an output without a gradient gets an undefined tensor in backward, not zeros.
  void set_materialize_grads(bool on) noexcept { materializes_ = on; }
  /// In backward: whether the gradient of the index-th tensor among forward's arguments is needed.
  [[nodiscard]] bool needs_input_grad(std::size_t index) const;

 private:
  friend void braid::detail::record_function(const char*, const std::shared_ptr<AutogradContext>&,
                                             const braid::detail::FunctionArguments&,
                                             std::vector<Tensor>&, braid::detail::FunctionBackward);
  variable_list to_save_, dirty_, constant_;  // of forward
  std::vector<SavedTensor> saved_;
  std::vector<bool> needs_;
  bool materializes_ = true;
};

/// An op with its own gradient: a struct with two static functions, forward and backward.
///
/// forward(ctx, arguments...)  returns a Tensor or a variable_list. It runs without recording
/// backward(ctx, gradients)    gets the gradient of each output, and returns one for each argument
///                             of forward: an undefined Tensor() for those that are no tensor or
///                             need none. With create_graph its ops are recorded, so that gradients
///                             of gradients work if it is made of recorded ops
/// apply(arguments...)         runs forward and records the op if a tensor among the arguments
///                             requires a gradient. A tensor in a vector is no such argument
/// Throws    what forward throws. backward() throws AutogradError for another number of gradients
/// Threads   as other ops: the op can be part of a replica
///
///     struct Scale : autograd::Function<Scale> {
///       static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, double factor) {
///         ctx->saved_data["factor"] = factor;
///         return x * factor;
///       }
///       static autograd::variable_list backward(autograd::AutogradContext* ctx,
///                                               autograd::variable_list gradients) {
///         return {gradients[0] * ctx->saved_data["factor"].toDouble(), Tensor()};
///       }
///     };
///     const Tensor x = ones({3}, {.requires_grad = true});
///     Scale::apply(x, 2.0).sum().backward();
///     print(x.grad());  // 2 2 2
template <class T> class Function {
 public:
  template <class... Args> static auto apply(Args&&... args) {
    const auto context = std::make_shared<AutogradContext>();
    braid::detail::FunctionArguments arguments;
    (arguments.add(static_cast<const std::remove_cvref_t<Args>&>(args)), ...);
    const auto run = [&] {
      const NoGrad guard;
      return T::forward(context.get(), std::forward<Args>(args)...);
    };
    auto result = run();
    const braid::detail::FunctionBackward backward = [](AutogradContext* ctx,
                                                        variable_list gradients) {
      return variable_list(T::backward(ctx, std::move(gradients)));
    };
    const char* const name = braid::detail::function_name<T>();
    if constexpr (std::is_same_v<decltype(result), variable_list>) {
      braid::detail::record_function(name, context, arguments, result, backward);
      return result;
    } else {
      static_assert(std::is_same_v<decltype(result), Tensor>,
                    "forward must return a Tensor or a variable_list");
      variable_list outputs{std::move(result)};
      braid::detail::record_function(name, context, arguments, outputs, backward);
      return std::move(outputs[0]);
    }
  }
};

/// braid::grad with LibTorch's arguments: retain_graph is create_graph if it is not given.
[[nodiscard]] variable_list grad(const variable_list& outputs, const variable_list& inputs,
                                 const variable_list& grad_outputs = {},
                                 std::optional<bool> retain_graph = {}, bool create_graph = false,
                                 bool allow_unused = false);
/// braid::backward with LibTorch's arguments.
void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
              std::optional<bool> retain_graph = {}, bool create_graph = false);

}  // namespace braid::autograd
