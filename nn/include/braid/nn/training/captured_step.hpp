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
#include <braid/nn/internal/constants.hpp>

// A training step that is recorded once and then replayed: on CUDA as one launch of a graph, so
// that the host does not have to launch each kernel.
namespace braid { class Stream; }
namespace braid::detail { class StepCapture; }

namespace braid::training {

/// The options of captured_step.
struct CapturedStepOptions {
  std::int64_t warm_up = 2;  ///< calls that run the step as usual, before it is recorded
  /// batches are copied to this device; if not given, the step runs on that of the first tensor
  std::optional<Device> device = {};
};

namespace detail {

/// How the tensors of a result are copied in each replay.
class ResultCopies {
 public:
  ResultCopies() = default;
  /// `recorded`: the result of the recorded step.
  explicit ResultCopies(const tree::Flat& recorded);
  /// Makes the tensors of a result.
  void allocate(const tree::Flat& result) const;
  void copy(const tree::Flat& result) const;

 private:
  struct Item {
    Tensor from;
    Shape strides = {};
    std::size_t first = 0;  // the index of the first leaf that is the same tensor
    bool bytes = false;     // both are dense and of one layout
  };
  std::vector<Item> items_;
};

/// What captured_step does with tensors, whatever the type of the batch.
class StepPlayer {
 public:
  using Capture = ::braid::detail::StepCapture;
  explicit StepPlayer(const CapturedStepOptions& options);
  ~StepPlayer();
  StepPlayer(StepPlayer&&) noexcept;
  StepPlayer& operator=(StepPlayer&&) noexcept;

  enum class Next : std::uint8_t { plain, record, replay };
  /// Checks a batch and returns what to do with it. `same_constants`: its parts that are no tensors
  /// are those of the recorded batch.
  [[nodiscard]] Next next(const tree::Flat& batch, std::type_index type, bool same_constants);
  /// Records the step, which reads `input`, a copy of the batch. Runs nothing. Destroying what is
  /// returned undoes what the step did on the host, unless run() was called. Returns null if the
  /// device cannot record.
  [[nodiscard]] std::shared_ptr<Capture> record(const tree::Flat& batch, const tree::Flat& input,
                                                const std::function<void()>& step);
  /// Runs what was recorded. From now on batches like this one are replays.
  void run(const std::shared_ptr<Capture>& recorded, const tree::Flat& batch, tree::Flat input,
           std::type_index type);
  /// Returns false if the step must be recorded again: then this call must run it as usual.
  [[nodiscard]] bool can_replay();
  /// Copies the batch to the recorded step's input and runs the step.
  void replay(const tree::Flat& batch);
  /// True if the batch may have to be moved to another device.
  [[nodiscard]] bool moves() const noexcept { return options_.device.has_value(); }
  /// Returns a tensor of the batch on the step's device.
  [[nodiscard]] Tensor moved(const Tensor& t) const;
  /// Returns a copy without a graph.
  [[nodiscard]] static Tensor copied(const Tensor& t);
  /// Removes the graphs from the result of a call that ran as usual. What something else uses too
  /// is copied.
  static void separate(const tree::Flat& result);

  [[nodiscard]] bool recorded() const noexcept { return capture_ != nullptr; }
  [[nodiscard]] bool recorded(std::type_index type) const noexcept {
    return capture_ != nullptr && type == type_;
  }
  [[nodiscard]] std::int64_t replays() const noexcept { return replays_; }

 private:
  /// A tensor of the recorded batch.
  struct Input {
    bool defined = false;
    Shape shape = {}, strides = {};
    DType dtype = DType::float32;
    Device device = {};
    std::size_t first = 0;  // the index of the first leaf that is the same tensor
    bool bytes = false;     // it and its copy are dense and of one layout
    [[nodiscard]] bool is_like(const Tensor& t) const noexcept;
  };
  [[nodiscard]] Device device_of(const tree::Flat& batch) const;
  [[nodiscard]] bool tied_alike(const tree::Flat& batch, std::size_t i) const noexcept;
  /// Empty if the batch is like the recorded one, else what is different.
  [[nodiscard]] std::string difference(const tree::Flat& batch, std::type_index type,
                                       bool same_constants) const;

  CapturedStepOptions options_;
  std::int64_t plain_calls_ = 0, replays_ = 0, lost_ = 0;
  bool supported_ = true, warned_ = false;
  std::vector<Input> inputs_;
  tree::Flat input_;  // the copies of the batch's tensors, which the recorded step reads
  std::type_index type_ = typeid(void);
  const Stream* told_ = nullptr;  // the stream that their memory was last told of, and keeps alive
  std::shared_ptr<Capture> capture_;
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
    static_assert(
        !detail::has_constants<std::remove_cvref_t<Result>>(),
        "braid: the step of a captured_step returns tensors (or structs and containers "
        "of nothing else): a number of the host would be the recorded one in each replay");
    const std::type_index type = typeid(B);
    flatten(flat_, batch);
    const bool same =
        player_.recorded(type) &&
        detail::same_constants(batch, static_cast<const Kept<B, Result>*>(kept_.get())->input);
    Next next = player_.next(flat_, type, same);
    if (next == Next::record) {
      kept_ = nullptr;  // frees the memory of an earlier recording
      auto kept = std::make_shared<Kept<B, Result>>(tree::map(batch, copied));
      tree::Flat input = tree::flatten(kept->input);
      for (const tree::Leaf& leaf : input.leaves)
        if (leaf.tensor->defined()) *leaf.tensor = player_.moved(*leaf.tensor);
      if (const auto recorded = player_.record(flat_, input, [&] { kept->run(step_); })) {
        kept_ = kept;
        return kept->result([&] { player_.run(recorded, flat_, std::move(input), type); });
      }
      next = Next::plain;
    }
    if (next == Next::replay) {
      if (player_.can_replay())
        return static_cast<Kept<B, Result>*>(kept_.get())->result([&] { player_.replay(flat_); });
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
    if constexpr (std::is_void_v<std::invoke_result_t<F&, const B&>>) {
      step_(batch);
    } else {
      auto result = step_(batch);
      detail::StepPlayer::separate(tree::flatten(result));
      return result;
    }
  }
  static Tensor copied(const std::string&, const Tensor& t) {
    return detail::StepPlayer::copied(t);
  }
  static Tensor detached(const std::string&, const Tensor& t) { return t.detach(); }
  /// As tree::flatten, in lists whose memory is used again.
  template <class T> static void flatten(tree::Flat& flat, const T& t) {
    flat.leaves.clear();
    flat.nodes.clear();
    tree::detail::Fill{flat, -1}(tree::Name(), t);
  }

  /// The input and the result of the recorded step.
  template <class B, class Result> struct Kept {
    B input;
    std::optional<Result> output = {};
    detail::ResultCopies copies = {};
    tree::Flat flat = {};
    explicit Kept(B batch) : input(std::move(batch)) {}
    void run(F& step) {
      output.emplace(tree::map(step(std::as_const(input)), detached));
      copies = detail::ResultCopies(tree::flatten(*output));
    }
    /// Runs the graph, and returns a copy of the result. Its memory is allocated before that.
    template <class Run> [[nodiscard]] Result result(const Run& run) {
      Result made = shared();
      flatten(flat, made);
      copies.allocate(flat);
      run();
      copies.copy(flat);
      return made;
    }
    [[nodiscard]] Result shared() const {
      const tree::Sharing scope;
      return *output;
    }
  };
  template <class B> struct Kept<B, void> {
    B input;
    explicit Kept(B batch) : input(std::move(batch)) {}
    void run(F& step) { step(std::as_const(input)); }
    template <class Run> void result(const Run& run) { run(); }
  };

  // destroyed last: the recorded step reads its tensors
  std::shared_ptr<void> kept_;
  detail::StepPlayer player_;
  F step_;
  tree::Flat flat_;  // of the batch of the call
};

/// Makes a training step faster whose time is the host's, not the device's: one that launches many
/// small kernels. Returns a function that does what `step` does, with the same results bit for bit.
/// On CUDA its first calls run the step as usual; the next one records it as a graph, and all later
/// ones replay the graph: one launch. On devices that cannot record, as the CPU, every call runs
/// the step as usual.
///
/// The step takes a batch, a tree with tensors, and returns a tree of tensors alone, or nothing. It
/// may compute gradients, clip them, step optimizers and remove gradients; all its tensors must be
/// on one device. What changes from call to call is right in replays too: the batch, learning rates
/// and momenta that were set between calls, step counts, the numbers of random ops and dropout,
/// version counters, loaded weights and states. What the step itself does on the host beyond that
/// happens only in the calls that run it: it must not depend on numbers of the host that change,
/// nor step a schedule (call schedules between steps), nor use the device on other threads or with
/// other libraries. Results are copies without a graph; no call changes the result of another one.
///
/// A batch that is not like the recorded one runs the step as usual, the first time with a warning:
/// one of other shapes, strides, dtypes or devices, of another structure (lengths of lists, keys of
/// maps, which optionals and tensors there are), with other tensors tied (twice in the batch), or
/// with other numbers, texts and other parts that are no tensors: a replay has the recorded ones.
///
/// The step runs as usual once, and is then recorded again, if something that it may depend on has
/// changed since it was recorded: a gradient, a parameter's memory, the state of an optimizer or
/// another tensor was replaced or dropped by the program; train, eval or EvalGuard changed the mode
/// of a module, also of one that the step does not call; a parameter was frozen or is no longer; a
/// hook of a layer or a leaf was registered or removed; or the gradient mode, autocast, the default
/// device, float32_precision() or cuda::gemm_engine() is another one. The third time it warns, and
/// says what changed. Not noticed are a `training` that is assigned, memory that is written through
/// pointers, and a variable that is set to another tensor while something else, as a list, holds
/// the old one: change such a tensor in place (`h.copy_(next)`). A call that counts multiply-adds
/// (summary) runs the step as usual.
///
/// The gradients that a replay makes are the graph's memory: the next replay overwrites them. Clone
/// one that is to be kept.
///
/// Memory    a recorded step has its own memory, as much as the step uses at its peak. It is freed
///           with the last tensor of the recording. The step keeps the tensors that it uses
/// Throws    ArgumentError for warm_up < 1, and for a batch without a tensor or with one that
///           requires a gradient. CaptureError, when the step is recorded, for one that reads
///           values on the host (item, printing, data-dependent shapes), copies between host and
///           device, waits for it, uses several devices or streams, events, or gradients that
///           several processes sum, replaces a tensor that it reads (`total = total + loss`),
///           changes its batch in place or computes its gradient, sets a learning rate or a seed
///           (even the same one), leaves another mode of a layer or another setting behind, uses
///           from_blob, registers hooks of parameters or layers, uses a schedule, a GradScaler or
///           an Average, creates an optimizer's state, or uses an optimizer without a kernel
///           (Adadelta). Then nothing was computed; gradients, step counts, version counters and
///           the random generator are as before. The same holds for errors of CUDA and
///           OutOfMemoryError in a call that records or replays. What the step throws
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
