#include <braid/nn/training/captured_step.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/ops/create.hpp>

namespace braid::training::detail {

bool has_sign(long double x) noexcept { return std::signbit(x); }

namespace {

constexpr std::int64_t kWarnAfter = 3;  // recordings that were lost

/// The dims in the order of memory, the outermost first: images may be channels last.
std::vector<std::int64_t> order_of(const Tensor& t) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(t.dim()));
  std::iota(dims.begin(), dims.end(), std::int64_t{0});
  std::stable_sort(dims.begin(), dims.end(), [&](std::int64_t a, std::int64_t b) {
    return t.strides()[static_cast<int>(a)] > t.strides()[static_cast<int>(b)];
  });
  return dims;
}

/// True if both tensors are dense, and the elements are in the same order in memory.
bool same_bytes(const Tensor& to, const Tensor& from) {
  const NoGrad guard;
  const std::vector<std::int64_t> order = order_of(from);
  return from.permute(order).is_contiguous() && to.permute(order).is_contiguous();
}

/// Copies the elements of a tensor. `bytes`: same_bytes(to, from), then it needs no kernel.
void copy(const Tensor& to, const Tensor& from, bool bytes) {
  if (!bytes) {
    const NoGrad guard;
    to.copy_(from);
    return;
  }
  const CopyDesc copy{to.id()->data(), to.device(), from.id()->data(), from.device(),
                      static_cast<std::size_t>(from.numel()) * size_of(from.dtype())};
  Stream& stream = current_stream(to.device());
  if (copy.bytes != 0) device_context(to.device()).backend->copy(copy, stream);
  to.storage()->bump_version();
}

std::string describe(const Shape& shape, DType dtype, Device device) {
  return str(dtype, " ", shape, " on ", device);
}
std::string name_of(const tree::Flat& batch, const tree::Leaf& leaf) {
  const std::string path = batch.path(leaf);
  return path.empty() ? "it" : str("'", path, "'");
}

/// Throws CaptureError if the step changes its batch: a replay would change the copy instead.
void check_unchanged(const tree::Flat& batch, const tree::Flat& input) {
  const ::braid::detail::StepCapture& capture = *::braid::detail::StepCapture::current();
  for (std::size_t i = 0; i < input.leaves.size(); ++i) {
    const Tensor& t = *input.leaves[i].tensor;
    if (!t.defined()) continue;
    if (t.requires_grad() || t.id()->grad)
      throw CaptureError(
          str("captured_step: expected a step that computes no gradient of its batch, got one of ",
              name_of(batch, batch.leaves[i])));
    // a tensor that is moved first is the step's own in plain calls too
    if (batch.leaves[i].tensor->device() == t.device() && capture.has_written(*t.storage()))
      throw CaptureError(str(
          "captured_step: expected a step that does not change its batch, got one that changes ",
          name_of(batch, batch.leaves[i]), " in place"));
  }
}

}  // namespace

ResultCopies::ResultCopies(const tree::Flat& recorded) {
  const std::vector<std::size_t> first = recorded.first_of();
  for (std::size_t i = 0; i < recorded.leaves.size(); ++i) {
    const Tensor& from = *recorded.leaves[i].tensor;
    items_.push_back({from, {}, first[i], false});
    if (!from.defined()) continue;
    // the strides of a dense tensor whose dims are in the order of `from`
    Shape& strides = items_.back().strides = from.shape();
    std::int64_t size = 1;
    const std::vector<std::int64_t> order = order_of(from);
    for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
      const int d = static_cast<int>(*dim);
      strides[d] = size;
      size *= std::max<std::int64_t>(from.shape()[d], 1);
    }
    const NoGrad guard;
    items_.back().bytes = from.permute(order).is_contiguous();
  }
}

void ResultCopies::allocate(const tree::Flat& result) const {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const auto& [from, strides, first, bytes] = items_[i];
    if (!from.defined()) continue;
    Tensor& made = *result.leaves[i].tensor;
    if (first != i) {
      made = *result.leaves[first].tensor;
      continue;
    }
    const auto size = static_cast<std::size_t>(from.numel()) * size_of(from.dtype());
    made = make_tensor_on(Storage::allocate(size, from.device()), from.shape(), strides, 0,
                          from.dtype());
  }
}

void ResultCopies::copy(const tree::Flat& result) const {
  for (std::size_t i = 0; i < items_.size(); ++i)
    if (items_[i].from.defined() && items_[i].first == i)
      detail::copy(*result.leaves[i].tensor, items_[i].from, items_[i].bytes);
}

StepPlayer::StepPlayer(const CapturedStepOptions& options) : options_(options) {
  if (options.warm_up < 1)
    throw ArgumentError(str("captured_step: expected warm_up >= 1, got ", options.warm_up));
}
StepPlayer::~StepPlayer() = default;
StepPlayer::StepPlayer(StepPlayer&&) noexcept = default;
StepPlayer& StepPlayer::operator=(StepPlayer&&) noexcept = default;

bool StepPlayer::Input::is_like(const Tensor& t) const noexcept {
  if (t.defined() != defined) return false;
  if (!defined) return true;
  if (t.shape() != shape || t.dtype() != dtype || t.device() != device) return false;
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] != 1 && t.strides()[d] != strides[d]) return false;
  return true;
}

Device StepPlayer::device_of(const tree::Flat& batch) const {
  if (options_.device) return *options_.device;
  for (const tree::Leaf& leaf : batch.leaves)
    if (leaf.tensor->defined()) return leaf.tensor->device();
  throw ArgumentError("captured_step: expected a batch with at least one tensor, got none");
}

Tensor StepPlayer::moved(const Tensor& t) const {
  return options_.device ? t.to(*options_.device) : t;
}

Tensor StepPlayer::copied(const Tensor& t) {
  const std::vector<std::int64_t> order = order_of(t);
  std::vector<std::int64_t> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  const NoGrad guard;
  const Tensor made =
      empty(t.permute(order).shape(), {.device = t.device(), .dtype = t.dtype()}).permute(back);
  copy(made, t, same_bytes(made, t));
  return made.detach();  // no view of another tensor
}

void StepPlayer::separate(const tree::Flat& result) {
  const std::vector<std::size_t> first = result.first_of();
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Tensor t = *result.leaves[i].tensor;
    if (!t.defined() || first[i] != i) continue;
    const auto handles = static_cast<std::uint32_t>(std::count(first.begin(), first.end(), i)) + 1;
    const bool shared = t.id()->references() > handles || t.storage()->references() > 1;
    const Tensor separate = shared ? copied(t) : t.detach();
    for (std::size_t k = i; k < first.size(); ++k)
      if (first[k] == i) *result.leaves[k].tensor = separate;
  }
}

/// True if leaf i is the same tensor as the leaf that it is the same as in the recorded batch.
bool StepPlayer::tied_alike(const tree::Flat& batch, std::size_t i) const noexcept {
  const TensorImpl* const id = batch.leaves[i].tensor->id();
  if (id == nullptr) return true;
  const std::size_t first = inputs_[i].first;
  if (first != i) return batch.leaves[first].tensor->id() == id;
  for (std::size_t j = 0; j < i; ++j)
    if (batch.leaves[j].tensor->id() == id) return false;
  return true;
}

std::string StepPlayer::difference(const tree::Flat& batch, std::type_index type,
                                   bool same_constants) const {
  if (type != type_) return "a batch like that of the recorded step, got one of another type";
  if (std::string other = input_.difference(batch); !other.empty())
    return str("a batch of the structure of the recorded one, got one in which ", other);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& t = *batch.leaves[i].tensor;
    const Input& in = inputs_[i];
    if (!in.is_like(t))
      return str("'", batch.path(batch.leaves[i]), "' of ", describe(in.shape, in.dtype, in.device),
                 " as in the recorded step, got ", describe(t.shape(), t.dtype(), t.device()),
                 in.shape == t.shape() && in.dtype == t.dtype() && in.device == t.device()
                     ? str(" with strides ", t.strides(), " where ", in.strides, " were recorded")
                     : "");
    if (!tied_alike(batch, i))
      return str("a batch whose tensors are tied as in the recorded one, got one in which ",
                 name_of(batch, batch.leaves[i]), " is tied to others");
  }
  if (!same_constants)
    return "a batch with the numbers and texts of the recorded one, got one with others";
  return {};
}

StepPlayer::Next StepPlayer::next(const tree::Flat& batch, std::type_index type,
                                  bool same_constants) {
  Capture::refuse("captured_step", "a call outside of other captured steps, got one inside");
  (void)device_of(batch);
  for (const tree::Leaf& leaf : batch.leaves)
    if (leaf.tensor->defined() && leaf.tensor->requires_grad())
      throw ArgumentError(
          str("captured_step: expected a batch of tensors that require no gradient, got '",
              batch.path(leaf), "' that does"));
  if (!supported_) return Next::plain;
  // work that is counted must be done as usual
  if (thread_state().multiply_adds != nullptr) return Next::plain;
  if (!capture_) return ++plain_calls_ > options_.warm_up ? Next::record : Next::plain;
  const std::string other = difference(batch, type, same_constants);
  if (other.empty()) return Next::replay;
  if (!warned_) {
    warned_ = true;
    warn(str("captured_step: expected ", other, "; such batches run without the graph"));
  }
  return Next::plain;
}

std::shared_ptr<StepPlayer::Capture> StepPlayer::record(const tree::Flat& batch,
                                                        const tree::Flat& input,
                                                        const std::function<void()>& step) {
  std::shared_ptr<Capture> recorded = Capture::record(device_of(batch), [&] {
    step();
    check_unchanged(batch, input);
  });
  supported_ = recorded != nullptr;
  return recorded;
}

void StepPlayer::run(const std::shared_ptr<Capture>& recorded, const tree::Flat& batch,
                     tree::Flat input, std::type_index type) {
  const std::vector<std::size_t> first = batch.first_of();
  inputs_.clear();
  for (std::size_t i = 0; i < batch.leaves.size(); ++i) {
    const Tensor& t = *batch.leaves[i].tensor;
    inputs_.emplace_back();
    if (t.defined())
      inputs_.back() = {true,
                        t.shape(),
                        t.strides(),
                        t.dtype(),
                        t.device(),
                        first[i],
                        same_bytes(*input.leaves[i].tensor, t)};
  }
  input_ = std::move(input);
  type_ = type;
  told_ = &current_stream(recorded->device());
  recorded->run();
  capture_ = recorded;
}

bool StepPlayer::can_replay() {
  const char* const changed = capture_->changed();
  if (changed == nullptr) return true;
  capture_ = nullptr;
  if (++lost_ == kWarnAfter)
    warn(
        str("captured_step: expected calls between which nothing is replaced or set that the "
            "recorded step depends on, got ",
            lost_, " after which the step had to be recorded again, at last because of ", changed));
  // this call is a plain one; the next one records
  plain_calls_ = options_.warm_up;
  return false;
}

void StepPlayer::replay(const tree::Flat& batch) {
  capture_->follow();
  Stream& stream = current_stream(capture_->device());
  const bool told = &stream == told_;
  told_ = &stream;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].defined) continue;
    const Tensor& to = *input_.leaves[i].tensor;
    if (!told) to.storage()->record_stream(stream);
    if (inputs_[i].first == i) copy(to, *batch.leaves[i].tensor, inputs_[i].bytes);
  }
  capture_->replay();
  ++replays_;
}

}  // namespace braid::training::detail
