#pragma once
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/nn/module.hpp>

// Calls of layers: what runs around `forward` when a layer is called, and hooks on it.
namespace braid::nn {

/// One call of a layer, as a forward hook sees it.
struct LayerCall {
  std::string_view path;         ///< `layer2.0.conv1`; empty at the root, or if it is not known
  const Module& layer;           ///< in DataParallel that of a replica
  std::vector<Tensor> inputs;    ///< those that are tensors
  std::vector<Tensor>& outputs;  ///< a tensor that is put here replaces the output
};
using ForwardHookFunction = std::function<void(const LayerCall& call)>;

/// A handle of a forward hook. Destroying it does not remove the hook.
class ForwardHookHandle {
 public:
  ForwardHookHandle() noexcept = default;
  explicit ForwardHookHandle(std::shared_ptr<const detail::ForwardHook> hook) noexcept
      : hook_(std::move(hook)) {}
  /// Removes the hook, from copies of the layer too. Thread-safe; a hook may remove itself.
  void remove() const noexcept;

 private:
  std::shared_ptr<const detail::ForwardHook> hook_;
};

namespace detail {

[[nodiscard]] ForwardHookHandle add_hook(Module& layer, ForwardHookFunction hook);
/// Puts the layer's path before the message of the Error that is being handled.
void name_layer(const Module& layer, Error& error) noexcept;
/// True if somebody looks at calls: a hook of the layer, or a LayerObserver of this thread.
[[nodiscard]] bool observed(const Module& layer) noexcept;
void before_call(const Module& layer);
void after_call(const Module& layer, std::vector<Tensor> inputs, std::vector<Tensor>& outputs);

template <class A> void append_tensor(std::vector<Tensor>& list, const A& a) {
  if constexpr (std::is_convertible_v<const A&, const Tensor&>) list.push_back(a);
}
/// The tensors of an output; `back` puts them where they came from.
template <class R> void run_after(const Module& layer, std::vector<Tensor> inputs, R& result) {
  std::vector<Tensor> outputs;
  if constexpr (Tree<R>) {
    const tree::Flat flat = tree::flatten(result);
    for (const tree::Leaf& leaf : flat.leaves) outputs.push_back(*leaf.tensor);
    after_call(layer, std::move(inputs), outputs);
    for (std::size_t i = 0; i < flat.leaves.size(); ++i) *flat.leaves[i].tensor = outputs[i];
  } else {
    after_call(layer, std::move(inputs), outputs);
  }
}

/// What a call of a layer does around f(): the layer's path in errors, then its hooks.
template <class F, class... A> auto call(const Module& layer, const F& f, const A&... a) {
  try {
    if (observed(layer)) [[unlikely]]
      before_call(layer);
    auto result = f();
    if (observed(layer)) [[unlikely]] {
      std::vector<Tensor> inputs;
      (append_tensor(inputs, a), ...);
      run_after(layer, std::move(inputs), result);
    }
    return result;
  } catch (Error& error) {
    name_layer(layer, error);
    throw;
  }
}

}  // namespace detail

/// Base of a module whose function is called `forward`, as in PyTorch. The call `block(x)` runs
/// forward(x), then the hooks of register_forward_hook. An Error that leaves forward begins with
/// the block's path, unless it begins with that of a layer in it.
///
///     struct Block : nn::Layer<Block> {
///       nn::Linear linear{8, 8};
///       Tensor forward(const Tensor& x) const { return x + relu(linear(x)); }
///       BRAID_FIELDS(linear)
///     };
template <class Self> struct Layer : Module {
  using CallsHooks = void;
  // S is Self, which is complete only when this is called
  template <class S = Self, class... A>
  [[nodiscard]] auto operator()(const A&... a) const
      -> decltype(std::declval<const S&>().forward(a...)) {
    const auto& self = static_cast<const Self&>(*this);
    return detail::call(self, [&] { return self.forward(a...); }, a...);
  }
};

/// Calls hook(call) after each call of the layer: to look at a feature map, or to replace the
/// output. Not for forward(x), as in PyTorch. A copy of the layer has the hook too: DataParallel's
/// replicas call it at the same time, each on its own thread. An exception of the hook leaves the
/// call. A layer of the library, or a struct that derives from nn::Layer.
///
///     const auto hook = nn::register_forward_hook(model.fc, [](const nn::LayerCall& call) {
///       print(call.path, ": ", call.outputs[0].shape());
///     });
///     hook.remove();
template <class M> ForwardHookHandle register_forward_hook(M& layer, ForwardHookFunction hook) {
  static_assert(!std::is_const_v<M>,
                "braid: register_forward_hook(layer, hook) changes the layer, which is const here");
  static_assert(
      requires { typename M::CallsHooks; },
      "braid: a hook needs a layer whose call the library sees: derive the struct from "
      "nn::Layer<Struct> and name its function forward");
  return detail::add_hook(layer, std::move(hook));
}

}  // namespace braid::nn
