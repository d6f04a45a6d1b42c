#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include <braid/core/tree.hpp>

// A training step that is recorded once and then replayed: on CUDA as one launch of a graph, so
// that the host does not have to launch each kernel.
namespace braid::detail { class StepCapture; }

namespace braid::training {

/// The options of captured_step.
struct CapturedStepOptions {
  std::int64_t warm_up = 2;  ///< calls that run the step as usual, before it is recorded
  /// batches are copied to this device; if not given, the step runs on that of the first tensor
  std::optional<Device> device = {};
};

namespace detail {

/// What captured_step does with tensors, whatever the type of the batch.
class StepPlayer {
 public:
  explicit StepPlayer(const CapturedStepOptions& options);
  ~StepPlayer();
  StepPlayer(StepPlayer&&) noexcept;
  StepPlayer& operator=(StepPlayer&&) noexcept;

  enum class Next : std::uint8_t { plain, record, replay };
  /// Checks a batch and returns what to do with it.
  [[nodiscard]] Next next(const tree::Flat& batch, std::type_index type);
  /// Records the step and runs it. Returns false if the device cannot record: then nothing ran.
  [[nodiscard]] bool record(const tree::Flat& batch, std::type_index type,
                            const std::function<void()>& step);
  /// Copies the batch to the recorded step's input and runs the step. Returns false if it must be
  /// recorded again: then nothing ran.
  [[nodiscard]] bool replay(const tree::Flat& batch, const tree::Flat& input);
  /// True if the batch may have to be moved to another device.
  [[nodiscard]] bool moves() const noexcept { return options_.device.has_value(); }
  /// Returns a tensor of the batch on the step's device.
  [[nodiscard]] Tensor moved(const Tensor& t) const;
  /// Returns a copy without a graph.
  [[nodiscard]] static Tensor copied(const Tensor& t);

  [[nodiscard]] bool recorded() const noexcept { return capture_ != nullptr; }
  [[nodiscard]] std::int64_t replays() const noexcept { return replays_; }

 private:
  struct Input {
    bool defined = false;
    Shape shape = {}, layout = {};
    DType dtype = DType::float32;
    Device device = {};
    friend bool operator==(const Input&, const Input&) noexcept = default;
  };
  static std::vector<Input> inputs_of(const tree::Flat& batch);
  [[nodiscard]] Device device_of(const tree::Flat& batch) const;

  CapturedStepOptions options_;
  std::int64_t plain_calls_ = 0, replays_ = 0, lost_ = 0;
  bool supported_ = true, warned_ = false;
  std::vector<Input> inputs_;
  std::type_index type_ = typeid(void);
  std::unique_ptr<::braid::detail::StepCapture> capture_;
};

}  // namespace detail

/// A step that is replayed; see captured_step. Not thread-safe. It must not outlive what the step
/// refers to.
template <class F> class CapturedStep {
 public:
  explicit CapturedStep(F step, const CapturedStepOptions& options = {})
      : player_(options), step_(std::move(step)) {}

  /// Runs the step on a batch. See captured_step.
  template <class B> std::invoke_result_t<F&, const B&> operator()(const B& batch) {
    using Result = std::invoke_result_t<F&, const B&>;
    using Next = detail::StepPlayer::Next;
    const std::type_index type = typeid(B);
    const tree::Flat flat = tree::flatten(batch);
    Next next = player_.next(flat, type);
    if (next == Next::record) {
      kept_ = nullptr;  // frees the memory of an earlier recording
      auto kept = std::make_shared<Kept<B, Result>>(Kept<B, Result>{tree::map(batch, copied), {}});
      for (const tree::Leaf& leaf : tree::flatten(kept->input).leaves)
        if (leaf.tensor->defined()) *leaf.tensor = player_.moved(*leaf.tensor);
      const bool done = player_.record(flat, type, [&] { kept->run(step_); });
      if (done) {
        kept_ = kept;
        return kept->result();
      }
      next = Next::plain;
    }
    if (next == Next::replay) {
      auto& kept = *static_cast<Kept<B, Result>*>(kept_.get());
      if (player_.replay(flat, tree::flatten(kept.input))) return kept.result();
      kept_ = nullptr;
    }
    if (!player_.moves()) return plain(batch);
    const B there =
        tree::map(batch, [this](const std::string&, const Tensor& t) { return player_.moved(t); });
    return plain(there);
  }

  /// True if the next batch of the recorded shapes is a replay.
  [[nodiscard]] bool recorded() const noexcept { return player_.recorded(); }
  /// The number of calls that were replays.
  [[nodiscard]] std::int64_t replays() const noexcept { return player_.replays(); }

 private:
  template <class B> std::invoke_result_t<F&, const B&> plain(const B& batch) {
    if constexpr (std::is_void_v<std::invoke_result_t<F&, const B&>>) step_(batch);
    else return tree::map(step_(batch), detached);
  }
  static Tensor copied(const std::string&, const Tensor& t) {
    return detail::StepPlayer::copied(t);
  }
  static Tensor detached(const std::string&, const Tensor& t) { return t.detach(); }

  /// The input and the result of the recorded step.
  template <class B, class Result> struct Kept {
    B input;
    std::optional<Result> output;
    void run(F& step) { output.emplace(tree::map(step(std::as_const(input)), detached)); }
    [[nodiscard]] Result result() const { return tree::map(*output, copied); }
  };
  template <class B> struct Kept<B, void> {
    B input;
    std::nullptr_t output;
    void run(F& step) { step(std::as_const(input)); }
    void result() const {}
  };

  detail::StepPlayer player_;
  F step_;
  std::shared_ptr<void> kept_;
};

/// Makes a training step faster whose time is the host's, not the device's: one that launches many
/// small kernels. Returns a function that does what `step` does, with the same results bit for bit.
/// On CUDA its first calls run the step as usual; the next one records it as a graph, and all later
/// ones replay the graph: one launch. On devices that cannot record, as the CPU, every call runs
/// the step as usual.
///
/// The step takes a batch and returns a result, both trees of tensors, or returns nothing. It may
/// compute gradients, clip them, step optimizers and remove gradients; all its tensors must be on
/// one device. What changes from call to call is right in replays too: the batch, learning rates
/// and momenta that were set between calls, step counts, the numbers of random ops and dropout,
/// version counters, loaded weights and states. What the step itself does on the host beyond that
/// happens only in the calls that run it: it must not depend on numbers of the host that change,
/// nor step a schedule (call schedules between steps). Results are copies without a graph.
///
/// A batch of other shapes, strides or dtypes than the recorded ones runs the step as usual, the
/// first time with a warning. The step runs as usual once, and is then recorded again, if something
/// that it uses was replaced since it was recorded (a gradient, a parameter's memory, the state of
/// an optimizer, another tensor that the program has dropped), if train, eval or EvalGuard has
/// changed the mode of a layer that it calls, if a parameter was frozen or is no longer, and if
/// autocast or the gradient mode around the call is another one. A `training` that is assigned is
/// not noticed.
///
/// Memory    a recorded step has its own memory, as much as the step uses at its peak. It is freed
///           with the last tensor of the recording. The step keeps the tensors that it uses
/// Throws    ArgumentError for warm_up < 1, and for a batch without a tensor or with one that
///           requires a gradient. CaptureError, when the step is recorded, for one that reads
///           values on the host (item, printing, data-dependent shapes), copies between host and
///           device, waits for it, uses several devices or gradients that several processes sum,
///           replaces a tensor that it reads (`total = total + loss`), sets a learning rate or a
///           seed, uses a schedule, a GradScaler or an Average, creates an optimizer's state, or
///           uses an optimizer without a kernel (Adadelta); then nothing was computed, and
///           gradients, step counts and the random generator are as before. What the step throws
///
///     nn::Linear net(5, 2);
///     optim::SGD optimizer(parameters(net), {.lr = 0.1});
///     auto step = training::captured_step([&](const std::pair<Tensor, Tensor>& batch) {
///       optimizer.zero_grad();
///       const Tensor loss = mse_loss(net(batch.first), batch.second);
///       loss.backward();
///       optimizer.step();
///       return loss;
///     });
///     for (int i = 0; i < 10; ++i) step(std::pair{randn({30, 5}), randn({30, 2})});
template <class F>
[[nodiscard]] CapturedStep<std::decay_t<F>> captured_step(F&& step,
                                                          const CapturedStepOptions& options = {}) {
  return CapturedStep<std::decay_t<F>>(std::forward<F>(step), options);
}

}  // namespace braid::training
