#include <braid/core/internal/step_capture.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>

namespace braid {

std::unique_ptr<detail::StepRecorder> DeviceBackend::make_recorder() { return nullptr; }

namespace detail {
namespace {

/// While it exists, the ops of the thread are recorded.
class Recording {
 public:
  Recording(StepCapture& capture, const std::shared_ptr<Stream>& stream) : guard_(stream) {
    thread_state().capture = &capture;
    recording_threads.fetch_add(1, std::memory_order_relaxed);
  }
  ~Recording() {
    recording_threads.fetch_sub(1, std::memory_order_relaxed);
    thread_state().capture = nullptr;
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  StreamGuard guard_;
};

/// All captures of the process: a layer's mode may be set on any thread.
struct Captures {
  std::mutex mutex;
  std::vector<StepCapture*> list;
};
Captures& captures() {
  static Captures* const all = new Captures;
  return *all;
}

}  // namespace

void note_read(const Storage& storage) noexcept {
  if (StepCapture* const capture = StepCapture::current()) capture->read(storage);
}
void note_written(Storage& storage) {
  if (StepCapture* const capture = StepCapture::current()) capture->written(storage);
}
void note_made(const Storage& storage) {
  if (StepCapture* const capture = StepCapture::current()) capture->made(storage);
}
void note_destroyed(const Storage& storage) noexcept {
  if (StepCapture* const capture = StepCapture::current()) capture->destroyed(storage);
}

StepCapture* StepCapture::current() noexcept { return thread_state().capture; }

void StepCapture::refuse(const char* op, const char* why) {
  if (current() != nullptr) throw CaptureError(str(op, ": expected ", why));
}

StepCapture::StepCapture(Device device, std::unique_ptr<StepRecorder> recorder)
    : device_(device), random_(random_state()), recorder_(std::move(recorder)) {
  const std::lock_guard lock(captures().mutex);
  captures().list.push_back(this);
}
StepCapture::~StepCapture() {
  const std::lock_guard lock(captures().mutex);
  std::erase(captures().list, this);
}

void StepCapture::reads_mode(const bool& training) {
  const std::lock_guard lock(captures().mutex);
  modes_.try_emplace(&training, Mode{training, training});
}
void StepCapture::mode_set(const bool* training, bool on) {
  const std::lock_guard lock(captures().mutex);
  for (StepCapture* const capture : captures().list)
    if (const auto found = capture->modes_.find(training); found != capture->modes_.end())
      found->second.now = on;
}
bool StepCapture::same_modes() const {
  const std::lock_guard lock(captures().mutex);
  return std::all_of(modes_.begin(), modes_.end(),
                     [](const auto& mode) { return mode.second.recorded == mode.second.now; });
}

std::unique_ptr<StepCapture> StepCapture::record(Device device, const std::function<void()>& step) {
  refuse("captured_step", "a call outside of other captured steps, got one inside");
  if (thread_state().random != nullptr)
    throw CaptureError("captured_step: expected a call outside of a RandomScope, got one inside");
  std::unique_ptr<StepRecorder> recorder = device_context(device).backend->make_recorder();
  if (recorder == nullptr) return nullptr;
  std::unique_ptr<StepCapture> capture(new StepCapture(device, std::move(recorder)));
  StepRecorder& own = *capture->recorder_;
  if (!own.begin(capture->functions_)) return nullptr;
  own.set_random_shift({capture->random_.seed, 0});
  bool recording = true;
  try {
    {
      const Recording scope(*capture, own.stream());
      step();
    }
    recording = false;
    own.end();
    capture->finish();
    own.launch(current_stream(device));
    capture->undo_.clear();
  } catch (...) {
    if (recording) own.cancel();
    capture->undo();
    throw;
  }
  return capture;
}

/// Takes note of what the step has changed on the host.
void StepCapture::finish() {
  const RandomState now = random_state();
  if (now.seed != random_.seed || now.stream < random_.stream)
    throw CaptureError(
        "captured_step: expected a step that leaves the random generator's seed alone, got one "
        "that sets it");
  draws_ = now.stream - random_.stream;
  for (auto& [impl, gradient] : gradients_) gradient.last = impl->grad;
  made_.clear();
  if (!all_used_elsewhere())
    throw CaptureError(
        "captured_step: expected a step that keeps the tensors from before it that it reads, got "
        "one that replaces or frees one, as total = total + loss does; total.add_(loss) keeps it");
  const ThreadState& state = thread_state();
  require([autocast = state.autocast, grad_enabled = state.grad_enabled] {
    const ThreadState& present = thread_state();
    return present.autocast == autocast && present.grad_enabled == grad_enabled &&
           present.random == nullptr;
  });
}

void StepCapture::undo() noexcept {
  for (auto function = undo_.rbegin(); function != undo_.rend(); ++function) (*function)();
  for (auto& [impl, gradient] : gradients_) impl->grad = gradient.first;
  set_random_state(random_);
}

void StepCapture::follow() { recorder_->follow(current_stream(device_)); }

bool StepCapture::replay() {
  if (!all_used_elsewhere() || !same_modes()) return false;
  for (const auto& still : requirements_)
    if (!still()) return false;
  for (const auto& [impl, gradient] : gradients_)
    if ((gradient.read && impl->grad != gradient.first) || impl->requires_grad != gradient.required)
      return false;
  const RandomState now = random_state();
  recorder_->set_random_shift({now.seed, now.stream - random_.stream});
  skip_random_streams(draws_);
  for (const auto& function : functions_) function();
  recorder_->launch(current_stream(device_));
  for (const auto& [key, used] : used_)
    if (used.written) used.storage->bump_version();
  for (auto& [impl, gradient] : gradients_) {
    impl->grad = gradient.last;
    if (gradient.last) gradient.last->storage->bump_version();
  }
  return true;
}

StepCapture::Gradient& StepCapture::gradient_of(TensorImpl& leaf) {
  const auto [found, fresh] = gradients_.try_emplace(&leaf);
  if (fresh) found->second = {Ref<TensorImpl>(&leaf), leaf.grad, {}, false, leaf.requires_grad};
  return found->second;
}

void StepCapture::reads_grad(TensorImpl& leaf) {
  if (gradients_.contains(&leaf)) return;
  gradient_of(leaf).read = true;
}
void StepCapture::replaces_grad(TensorImpl& leaf) { (void)gradient_of(leaf); }

void StepCapture::read(const Storage& storage) {
  if (storage.device() == device_ && !made_.contains(&storage))
    used_.try_emplace(&storage, Used{Ref<Storage>(const_cast<Storage*>(&storage))});
}
void StepCapture::written(Storage& storage) {
  if (!made_.contains(&storage))
    used_.try_emplace(&storage, Used{Ref<Storage>(&storage)}).first->second.written = true;
}
/// False if only the capture still has a tensor that the step uses: a plain step would use another.
bool StepCapture::all_used_elsewhere() const noexcept {
  for (const auto& [key, used] : used_)
    if (used.storage->references() == 1) return false;
  return true;
}

}  // namespace detail
}  // namespace braid
