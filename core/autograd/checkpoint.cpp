// Activation checkpointing. During the first call of a function, each SavedTensor of its thread
// gets a number instead of a tensor. When a node's backward asks for one, the function runs again,
// and the SavedTensors of this second call, which come in the same order, pass their tensors on.
#include <braid/core/checkpoint.hpp>

#include <mutex>

#include "checkpoint.hpp"

namespace braid {
namespace detail {
namespace {

/// What a saved tensor must look like when it is computed again.
struct Expected {
  Shape shape;
  DType dtype;
  Device device;
  const TensorImpl* leaf;  // to compare; null if it is not a leaf that requires a gradient
  std::uint64_t version;
};

[[noreturn]] void changed(const Tensor& t, std::uint64_t version) {
  throw AutogradError(
      str("checkpoint: expected arguments and parameters unchanged until backward, "
          "got one of shape ",
          t.shape(), " changed in place (version ", version, " before, ", t.version(), " now)"));
}

class CheckpointFrame;

/// What the tensors that a thread saves are for. Null: they are kept as usual.
struct Run {
  CheckpointFrame* frame = nullptr;
  bool again = false;     // the frame's second call
  bool history = false;   // recorded, for gradients of gradients
  bool repeated = false;  // all that is computed has been computed before
};
thread_local Run* run = nullptr;
thread_local std::shared_ptr<const void> surroundings;  // that functions may refer to

/// Sets the thread's run while it exists.
class RunScope {
 public:
  explicit RunScope(Run& mine) noexcept : before_(std::exchange(run, &mine)) {}
  ~RunScope() { run = before_; }
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

 private:
  Run* before_;
};

/// Where the random numbers of the first call begin.
struct RandomStart {
  std::uint64_t seed, first;
  RandomScope::Part part;
};

RandomStart random_start() {
  if (const RandomScope* const scope = thread_state().random)
    return {scope->seed(), scope->first() + scope->used(), scope->part()};
  return {initial_seed(), random_state().stream, {.of_generator = true}};
}

/// The saved tensors of one checkpointed call.
class CheckpointFrame final : public autograd::Recomputed {
 public:
  explicit CheckpointFrame(std::function<void()> again)
      : again_(std::move(again)), state_(thread_state()), random_(random_start()) {}

  [[nodiscard]] const RandomStart& random() const noexcept { return random_; }

  /// Notes that the first call saves such a tensor; returns its number.
  std::uint32_t expect(const Tensor& t) {
    const bool leaf = t.id()->requires_grad && !t.id()->grad_fn;
    expected_.push_back({t.shape(), t.dtype(), t.device(), leaf ? t.id() : nullptr, t.version()});
    return static_cast<std::uint32_t>(expected_.size() - 1);
  }

  /// Takes the next tensor of the second call.
  void put(const Tensor& t, bool history) {
    if (next_ < expected_.size()) {
      const Expected& first = expected_[next_];
      if (t.shape() != first.shape || t.dtype() != first.dtype || t.device() != first.device)
        throw AutogradError(str("checkpoint: expected the function to save ", first.dtype, " ",
                                first.shape, " on ", first.device, " as tensor ", next_,
                                " again, got ", t.dtype(), " ", t.shape(), " on ", t.device(),
                                "; it must compute the same in both calls"));
      if (first.leaf == t.id() && first.version != t.version()) changed(t, first.version);
      tensors_[next_] = history ? t : t.detach();
    }
    ++next_;
  }

  /// Notes that the first call has ended.
  void finish() noexcept { finished_ = true; }

  Tensor take(std::uint32_t index, bool history) override {
    if (!finished_)
      throw AutogradError(
          "checkpoint: expected a function that computes no gradients of its own results (grad, "
          "backward), got one that does; compute them outside of checkpoint");
    const std::lock_guard lock(mutex_);
    if (tensors_.empty() || !tensors_[index].defined() || (history && !history_)) compute(history);
    return std::move(tensors_[index]);
  }

  void destroy() const noexcept override { delete this; }

 private:
  void compute(bool history) {
    tensors_.assign(expected_.size(), {});
    next_ = 0;
    history_ = history;
    try {
      ThreadState state = state_;
      state.grad_enabled = true;
      state.streams = thread_state().streams;
      state.multiply_adds = thread_state().multiply_adds;
      state.capture = thread_state().capture;
      state.context = nullptr;
      struct Restore {
        ThreadState before;
        ~Restore() { thread_state() = before; }
      } const restore{std::exchange(thread_state(), state)};
      const RandomScope random(random_.first, random_.part, random_.seed);
      const KeepForCheckpoint keep(surroundings_);
      Run mine{this, true, history, true};
      const RunScope scope(mine);
      again_();
      if (next_ != expected_.size())
        throw AutogradError(str("checkpoint: expected the function to save ", expected_.size(),
                                " tensors again, got ", next_,
                                "; it must compute the same in both calls"));
    } catch (...) {
      tensors_.clear();
      throw;
    }
  }

  std::function<void()> again_;
  std::shared_ptr<const void> surroundings_ = surroundings;
  ThreadState state_;  // of the first call; its pointers are not used
  RandomStart random_;
  std::mutex mutex_;  // nodes of several devices may ask at the same time
  std::vector<Expected> expected_;
  std::vector<Tensor> tensors_;
  std::size_t next_ = 0;
  bool history_ = false, finished_ = false;
};

}  // namespace

bool recomputing() noexcept { return run && run->repeated; }

struct CheckpointScope::State {
  Ref<CheckpointFrame> frame;
  Run mine;
  RunScope scope;
  std::optional<RandomScope> random;  // so that other threads' draws do not come between
  explicit State(std::function<void()> again)
      : frame(new CheckpointFrame(std::move(again))),
        mine{frame.get(), false, false, recomputing()},
        scope(mine) {
    if (!thread_state().random)
      random.emplace(frame->random().first, frame->random().part, frame->random().seed);
  }
  ~State() {
    frame->finish();
    if (random) skip_random_streams(random->used());
  }
};

CheckpointScope::CheckpointScope(std::function<void()> again)
    : state_(grad_enabled() ? std::make_unique<State>(std::move(again)) : nullptr) {}
CheckpointScope::~CheckpointScope() = default;

KeepForCheckpoint::KeepForCheckpoint(std::shared_ptr<const void> object) noexcept
    : before_(std::exchange(surroundings, std::move(object))) {}
KeepForCheckpoint::~KeepForCheckpoint() { surroundings = std::move(before_); }

KeptVersions::KeptVersions(const tree::Flat& kept) {
  for (const tree::Leaf& leaf : kept.leaves) {
    Tensor& t = *leaf.tensor;
    if (!t.defined() || leaf.kind == tree::Kind::buffer) continue;
    if (leaf.kind == tree::Kind::tensor && t.id()->base) t = without_base(t);
    tensors_.emplace_back(t, t.version());
  }
}
void KeptVersions::check() const {
  for (const auto& [t, version] : tensors_)
    if (t.version() != version) changed(t, version);
}

Tensor KeptTensor::get() const {
  Tensor t = saved_.get();
  if (requires_grad_ && !t.requires_grad()) t = t.detach().requires_grad_();
  return t;
}

void refuse_in_checkpoint(const char* op) {
  if (run)
    throw AutogradError(str(op,
                            ": expected a call outside of checkpoint, got one inside: the other "
                            "threads would not take part when it is computed again"));
}

bool keeps_saved() noexcept { return !run; }
bool wants_history() noexcept { return grad_enabled() && !(run && run->again && !run->history); }

Passed pass_to_checkpoint(const Tensor& t) {
  if (!run->again) return {Ref<autograd::Recomputed>(run->frame), run->frame->expect(t), false};
  run->frame->put(t, run->history);
  return {{}, 0, run->history};
}

}  // namespace detail

}  // namespace braid
