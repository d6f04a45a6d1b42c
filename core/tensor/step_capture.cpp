#include <braid/core/internal/step_capture.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>

#include "ops/random_streams.hpp"

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
  std::atomic<std::size_t> count{0};
};
Captures& captures() {
  static Captures* const all = new Captures;
  return *all;
}

std::atomic<std::uint64_t> changes_of_hooks{0};

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

StepSettings StepSettings::now() noexcept {
  const ThreadState& state = thread_state();
  return {state.grad_enabled, state.autocast, get_default_device(), float32_precision(),
          changes_of_hooks.load(std::memory_order_relaxed)};
}

StepCapture* StepCapture::current() noexcept { return thread_state().capture; }

void StepCapture::refuse(const char* op, const char* why) {
  if (current() != nullptr) throw CaptureError(str(op, ": expected ", why));
}

void StepCapture::check_stream(const Stream& stream) const {
  if (stream.device() != device_)
    throw CaptureError(str("captured_step: expected a step on ", device_, " alone, got work on ",
                           stream.device()));
  if (&stream != &this->stream())
    throw CaptureError(
        str("captured_step: expected a step on the stream on which it is called, "
            "got work on another stream of ",
            device_));
}

StepCapture::StepCapture(Device device, std::unique_ptr<StepRecorder> recorder)
    : device_(device),
      settings_(StepSettings::now()),
      random_(random_state()),
      recorder_(std::move(recorder)) {
  const std::lock_guard lock(captures().mutex);
  captures().list.push_back(this);
  ++captures().count;
}
StepCapture::~StepCapture() {
  {
    const std::lock_guard lock(captures().mutex);
    std::erase(captures().list, this);
    --captures().count;
  }
  if (state_ == State::recording) recorder_->cancel();
  if (state_ == State::recording || state_ == State::recorded) undo_recording();
}

void StepCapture::reads_mode(const bool& training) {
  const std::lock_guard lock(captures().mutex);
  modes_.try_emplace(&training, Mode{training, training}).first->second.called = true;
}
template <class Concerns>
void StepCapture::note_all(const bool* flag, bool before, bool on, const Concerns& concerns) {
  if (captures().count.load(std::memory_order_relaxed) == 0) return;
  const StepCapture* const recording = current();
  const std::lock_guard lock(captures().mutex);
  for (StepCapture* const capture : captures().list) {
    if (!concerns(*capture)) continue;
    try {
      capture->note_mode(flag, before, on, capture == recording);
    } catch (...) {  // no memory for the note: the step is recorded again
      ++capture->other_modes_;
    }
  }
}
void StepCapture::mode_set(const bool* training, bool before, bool on) {
  note_all(training, before, on, [](const StepCapture&) { return true; });
}
void StepCapture::requires_grad_set(const TensorImpl& leaf, bool on) {
  note_all(&leaf.requires_grad, !on, on, [&](const StepCapture& capture) {
    return capture.state_ == State::ran && capture.used_.contains(leaf.storage.get());
  });
}
/// `own`: the step itself sets the mode. If it does that first, the mode before it does not matter;
/// the mode after it is what the next call finds.
void StepCapture::note_mode(const bool* training, bool before, bool on, bool own) {
  auto found = modes_.find(training);
  if (found == modes_.end()) {
    if (!own && before == on) return;
    const bool first = own ? on : before;
    found = modes_.try_emplace(training, Mode{first, first, own, own}).first;
  }
  Mode& mode = found->second;
  const bool differed = mode.differs();
  mode.now = on;
  if (own && mode.set_first) mode.recorded = on;
  if (mode.differs() != differed) other_modes_ += differed ? -1 : 1;
  if (!mode.called && !mode.differs()) modes_.erase(found);
}

void StepCapture::hooks_changed(const char* op, const Storage* of) {
  if (const StepCapture* const capture = current();
      capture != nullptr && !(of != nullptr && capture->has_made(*of)))
    refuse(op, "a call outside of a captured step, got one inside");
  hook_removed();
}
void StepCapture::hook_removed() noexcept {
  changes_of_hooks.fetch_add(1, std::memory_order_relaxed);
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
  capture->state_ = State::recording;  // what is thrown from here on destroys the capture
  own.set_random_shift({capture->random_.seed, 0});
  {
    const Recording scope(*capture, own.stream());
    step();
  }
  capture->state_ = State::recorded;
  own.end();
  capture->finish();
  return capture;
}

void StepCapture::run() {
  tell_gradients(current_stream(device_));
  recorder_->launch(current_stream(device_));
  state_ = State::ran;
  for (auto& [impl, gradient] : gradients_)
    if (!gradient.read) gradient.first = {};  // replays do not need it
}

/// Takes note of what the step has changed on the host.
void StepCapture::finish() {
  const RandomState random = random_state();
  if (random.seed != random_.seed || random.stream < random_.stream)
    throw CaptureError(
        "captured_step: expected a step that leaves the random generator's seed alone, got one "
        "that sets it");
  draws_ = random.stream - random_.stream;
  const StepSettings settings = StepSettings::now();
  settings_.hooks = settings.hooks;  // a step may register hooks of its own tensors
  if (settings != settings_ || recorder_->changed_setting() != nullptr)
    throw CaptureError(
        "captured_step: expected a step that leaves the settings around it as they are (the "
        "gradient mode, autocast, the default device, how float32 is multiplied), got one that "
        "changes them");
  {
    const std::lock_guard lock(captures().mutex);
    for (const auto& [flag, mode] : modes_)
      if (mode.called && mode.differs())
        throw CaptureError(
            "captured_step: expected a step that leaves each layer in the mode in which it calls "
            "it first, got one that changes the mode");
  }
  drop_own_gradients();
  for (auto& [impl, gradient] : gradients_) {
    gradient.last = impl->grad;
    gradient.made = gradient.last && !used_.contains(gradient.last->storage.get());
    gradient.memory = impl->storage.get();
    gradient.required = impl->requires_grad;  // as the next call finds it
  }
  made_.clear();
  slices_.clear();
  if (!all_used_elsewhere())
    throw CaptureError(
        "captured_step: expected a step that keeps the tensors from before it that it reads, got "
        "one that replaces or frees one, as total = total + loss does; total.add_(loss) keeps it");
}

/// Forgets the tensors that only the capture still has: leaves that the step has made, and tensors
/// whose gradient it retained. Each run has its own.
void StepCapture::drop_own_gradients() {
  while (std::erase_if(gradients_, [](const auto& entry) {
           return entry.second.leaf->references() == 1;
         }) != 0) {}  // the gradient of one may be another one
}

void StepCapture::undo(std::size_t count) noexcept {
  while (count-- > 0)
    if (functions_[count].undo) functions_[count].undo();
}

void StepCapture::undo_recording() noexcept {
  undo(functions_.size());
  for (auto& [impl, gradient] : gradients_) impl->grad = gradient.first;
  for (const auto& [key, used] : used_) used.storage->take_back_versions(used.versions);
  ops::take_back_random_streams(random_, drawn_);
}

void StepCapture::follow() { recorder_->follow(current_stream(device_)); }

const char* StepCapture::changed() const {
  if (other_modes_.load(std::memory_order_relaxed) != 0)
    return "a mode of a layer, or what requires a gradient";
  const StepSettings now = StepSettings::now();
  if (now.grad_enabled != settings_.grad_enabled) return "the gradient mode";
  if (now.autocast != settings_.autocast) return "autocast";
  if (now.default_device != settings_.default_device) return "the default device";
  if (now.precision != settings_.precision) return "the precision of float32 products";
  if (now.hooks != settings_.hooks) return "a hook of a layer or a parameter";
  if (thread_state().random != nullptr) return "the RandomScope around the call";
  if (const char* const setting = recorder_->changed_setting()) return setting;
  for (const auto& [impl, gradient] : gradients_) {
    if (impl->references() == 1) return "a tensor that the step uses";  // the program has none
    if (gradient.read && impl->grad != gradient.first) return "a gradient";
    if (impl->requires_grad != gradient.required) return "what requires a gradient";
    if (impl->storage.get() != gradient.memory) return "a tensor that the step uses";
  }
  if (!all_used_elsewhere()) return "a tensor that the step uses";
  for (const Requirement& requirement : requirements_)
    if (!requirement.still()) return requirement.what;
  return nullptr;
}

/// The program uses the gradients on the stream of the call. Their memory is the graph's.
void StepCapture::tell_gradients(Stream& stream) {
  if (&stream == told_) return;
  for (const auto& [impl, gradient] : gradients_)
    if (gradient.made) gradient.last->storage->record_stream(stream);
  told_ = &stream;
}

void StepCapture::replay() {
  tell_gradients(current_stream(device_));
  // taken at once, because a step of another thread may draw at the same time
  const RandomState before = skip_random_streams(draws_);
  std::size_t done = 0;
  try {
    recorder_->set_random_shift({before.seed, before.stream - random_.stream});
    for (; done < functions_.size(); ++done) functions_[done].again();
    recorder_->launch(current_stream(device_));
  } catch (...) {
    undo(done);
    ops::take_back_random_streams(before, draws_);
    throw;
  }
  for (const auto& [key, used] : used_)
    for (std::uint64_t i = 0; i < used.versions; ++i) used.storage->bump_version();
  for (auto& [impl, gradient] : gradients_) {
    impl->grad = gradient.last;
    if (gradient.made) gradient.last->storage->bump_version();
  }
}

StepCapture::Gradient& StepCapture::gradient_of(TensorImpl& leaf) {
  const auto [found, fresh] = gradients_.try_emplace(&leaf);
  if (fresh)
    found->second = {Ref<TensorImpl>(&leaf), leaf.grad, {}, false, leaf.requires_grad, false};
  return found->second;
}

void StepCapture::reads_grad(TensorImpl& leaf) {
  if (gradients_.contains(&leaf)) return;
  gradient_of(leaf).read = true;
}
void StepCapture::replaces_grad(TensorImpl& leaf) { (void)gradient_of(leaf); }

void StepCapture::sliced(const Storage& part, Storage& whole) {
  if (made_.contains(&whole)) return made(part);
  const auto of = slices_.find(&whole);
  slices_.insert_or_assign(&part, of == slices_.end() ? &whole : of->second);
}
void StepCapture::destroyed(const Storage& storage) noexcept {
  made_.erase(&storage);
  slices_.erase(&storage);
}

/// The entry of a storage from before the step, or of the one that it is a part of.
StepCapture::Used& StepCapture::use(Storage& storage) {
  const auto part = slices_.find(&storage);
  Storage& whole = part == slices_.end() ? storage : *part->second;
  return used_.try_emplace(&whole, Used{Ref<Storage>(&whole)}).first->second;
}
void StepCapture::read(const Storage& storage) {
  if (storage.device() == device_ && !made_.contains(&storage))
    (void)use(const_cast<Storage&>(storage));
}
void StepCapture::written(Storage& storage) {
  if (made_.contains(&storage)) return;
  Used& used = use(storage);
  used.written = true;
  // a part has a version of its own, which ends with the step
  if (used.storage.get() == &storage) ++used.versions;
}
bool StepCapture::has_written(const Storage& storage) const {
  const auto found = used_.find(&storage);
  return found != used_.end() && found->second.written;
}
/// False if only the capture still has a tensor that the step uses: a plain step would use another.
bool StepCapture::all_used_elsewhere() const noexcept {
  for (const auto& [key, used] : used_)
    if (used.storage->references() == 1) return false;
  return true;
}

}  // namespace detail
}  // namespace braid
