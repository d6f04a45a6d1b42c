#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/check_model.hpp>
#include <braid/core/random.hpp>
#include <braid/core/tree.hpp>

// Activation checkpointing: memory is saved by computing a part of the forward twice.
namespace braid {

namespace detail {

/// True on a thread that computes a checkpointed function again. Layers must not update statistics
/// then: the first forward has done so.
[[nodiscard]] bool recomputing() noexcept;
/// Throws AutogradError on a thread that runs a checkpointed function: for operations that wait for
/// other threads, which would not take part when the function is computed again.
void refuse_in_checkpoint(const char* op);

/// While it exists, tensors that ops of this thread save for backward are not kept. `again`
/// computes them; with `history` set, the results are recorded for gradients of gradients.
class CheckpointScope {
 public:
  explicit CheckpointScope(std::function<void()> again);
  ~CheckpointScope();
  CheckpointScope(const CheckpointScope&) = delete;
  CheckpointScope& operator=(const CheckpointScope&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;  // null if nothing is recorded
};

/// While it exists, the checkpointed functions of this thread keep an object until their backward.
/// For the replicas of a call, which functions may refer to.
class KeepForCheckpoint {
 public:
  explicit KeepForCheckpoint(std::shared_ptr<const void> object) noexcept;
  ~KeepForCheckpoint();
  KeepForCheckpoint(const KeepForCheckpoint&) = delete;
  KeepForCheckpoint& operator=(const KeepForCheckpoint&) = delete;

 private:
  std::shared_ptr<const void> before_;
};

/// A tensor argument of a checkpointed function, kept for the second call.
class KeptTensor {
 public:
  explicit KeptTensor(const Tensor& t)
      : saved_(t), requires_grad_(t.defined() && t.requires_grad()) {}
  [[nodiscard]] Tensor get() const;

 private:
  SavedTensor saved_;
  bool requires_grad_;
};

/// The versions of the tensors of a kept tree. Buffers are left out, because layers update their
/// statistics.
class KeptVersions {
 public:
  KeptVersions() = default;
  /// Replaces views by tensors that do not hold their base.
  explicit KeptVersions(const tree::Flat& kept);
  /// Throws AutogradError if one of the tensors was changed in place.
  void check() const;

 private:
  std::vector<std::pair<Tensor, std::uint64_t>> tensors_;
};

/// Other arguments: of a model, and of anything else that holds tensors, the tensors are shared.
template <class T> struct KeptValue {
  T value;
  KeptVersions versions;
  explicit KeptValue(const T& t)
    requires tree::detail::Holds<T>
      : value(tree::share(t)), versions(tree::flatten(value)) {}
  explicit KeptValue(const T& t) : value(t) {}
  explicit KeptValue(T&& t)
    requires(!tree::detail::Holds<T>)
      : value(std::move(t)) {}
  [[nodiscard]] const T& get() const {
    versions.check();
    return value;
  }
};
template <class T>
using Kept = std::conditional_t<std::is_same_v<std::decay_t<T>, Tensor>, KeptTensor,
                                KeptValue<std::decay_t<T>>>;

}  // namespace detail

/// Calls f(args...) without keeping what its ops save for backward. The first backward that needs
/// one of these tensors calls f again, with the same arguments and the same random numbers. So a
/// net of n such parts needs the memory of one part and of n inputs, for one more forward.
///
/// f, args   are kept until backward: of models and batches a copy that shares the tensors, of all
///           else, lambdas too, a plain copy. What a lambda refers to must live until then; the
///           replicas of a DataParallel do. Both calls must do the same. Layers count as called
///           once: the second call does not change BatchNorm's statistics
/// Returns   what f returns
/// Gradient  as without checkpoint, to the last bit. Gradients of gradients may differ in the last
///           bits, because sums of several gradients are taken in another order
/// Throws    what f throws. AutogradError if f computes gradients of its own results. backward()
///           throws AutogradError if the second call saves other tensors than the first, or if a
///           tensor of an argument or of a model f (but no buffer), or a parameter that ops of f
///           save, was changed in place between them
/// Threads   a call of DataParallel inside f, or a layer that sums over replicas, throws
///           AutogradError. Put checkpoint inside the replicas' module instead. replica_group() is
///           null in the second call. f must not wait for another thread whose backward goes
///           through this call: that one waits for f
/// Source    Chen, Xu, Zhang, Guestrin 2016, Training Deep Nets with Sublinear Memory Cost
///
///     struct Encoder : nn::Module {
///       std::vector<nn::TransformerEncoderLayer> layers;
///       Tensor operator()(Tensor t) const {
///         for (const auto& layer : layers) t = checkpoint(layer, t);
///         return t;
///       }
///       BRAID_FIELDS(layers)
///     };
template <class F, class... Args>
  requires std::is_invocable_v<const std::decay_t<F>&, const Args&...>
auto checkpoint(F&& f, const Args&... args) {
  struct Call {
    detail::Kept<F> f;
    std::tuple<detail::Kept<Args>...> args;
  };
  const std::shared_ptr<Call> call(
      new Call{detail::Kept<F>(std::forward<F>(f)), {detail::Kept<Args>(args)...}});
  const detail::CheckpointScope scope([call] {
    std::apply([&](const auto&... kept) { (void)std::invoke(call->f.get(), kept.get()...); },
               call->args);
  });
  return std::invoke(call->f.get(), args...);
}
/// A compile error.
template <class F, class... Args> detail::NotCallable checkpoint(F&&, const Args&...) {
  detail::check_call<std::decay_t<F>, Args...>();
  return {};
}

}  // namespace braid
