#include <braid/nn/training/captured_step.hpp>

#include <algorithm>
#include <numeric>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/ops/create.hpp>

namespace braid::training::detail {
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

/// Copies the elements of a tensor: dense ones of the same layout without a kernel.
void copy(const Tensor& to, const Tensor& from) {
  const NoGrad guard;
  const std::vector<std::int64_t> order = order_of(from);
  if (!from.permute(order).is_contiguous() || !to.permute(order).is_contiguous()) {
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

}  // namespace

StepPlayer::StepPlayer(const CapturedStepOptions& options) : options_(options) {
  if (options.warm_up < 1)
    throw ArgumentError(str("captured_step: expected warm_up >= 1, got ", options.warm_up));
}
StepPlayer::~StepPlayer() = default;
StepPlayer::StepPlayer(StepPlayer&&) noexcept = default;
StepPlayer& StepPlayer::operator=(StepPlayer&&) noexcept = default;

std::vector<StepPlayer::Input> StepPlayer::inputs_of(const tree::Flat& batch) {
  std::vector<Input> list;
  for (const tree::Leaf& leaf : batch.leaves) {
    const Tensor& t = *leaf.tensor;
    if (!t.defined()) {
      list.emplace_back();
      continue;
    }
    if (t.requires_grad())
      throw ArgumentError(
          str("captured_step: expected a batch of tensors that require no gradient, got '",
              batch.path(leaf), "' that does"));
    Shape layout = t.strides();
    for (int d = 0; d < t.dim(); ++d)
      if (t.shape()[d] == 1) layout[d] = 0;
    list.push_back({true, t.shape(), layout, t.dtype(), t.device()});
  }
  return list;
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
  copy(made, t);
  return made;
}

StepPlayer::Next StepPlayer::next(const tree::Flat& batch, std::type_index type) {
  ::braid::detail::StepCapture::refuse("captured_step",
                                       "a call outside of other captured steps, got one inside");
  (void)device_of(batch);
  const std::vector<Input> inputs = inputs_of(batch);
  if (!supported_) return Next::plain;
  if (!capture_) return ++plain_calls_ > options_.warm_up ? Next::record : Next::plain;
  if (type == type_ && inputs == inputs_) return Next::replay;
  if (!warned_) {
    warned_ = true;
    std::size_t i = 0;
    while (i < inputs.size() && i < inputs_.size() && inputs[i] == inputs_[i]) ++i;
    const bool tensors = type == type_ && i < inputs.size() && i < inputs_.size();
    warn(tensors ? str("captured_step: expected '", batch.path(batch.leaves[i]), "' of ",
                       describe(inputs_[i].shape, inputs_[i].dtype, inputs_[i].device),
                       " as in the recorded step, got ",
                       describe(inputs[i].shape, inputs[i].dtype, inputs[i].device),
                       "; such batches run without the graph")
                 : str("captured_step: expected a batch like that of the recorded step, got one of "
                       "another type or size; such batches run without the graph"));
  }
  return Next::plain;
}

bool StepPlayer::record(const tree::Flat& batch, std::type_index type,
                        const std::function<void()>& step) {
  capture_ = ::braid::detail::StepCapture::record(device_of(batch), step);
  supported_ = capture_ != nullptr;
  inputs_ = inputs_of(batch);
  type_ = type;
  return supported_;
}

bool StepPlayer::replay(const tree::Flat& batch, const tree::Flat& input) {
  capture_->follow();
  for (std::size_t i = 0; i < batch.leaves.size(); ++i)
    if (batch.leaves[i].tensor->defined()) copy(*input.leaves[i].tensor, *batch.leaves[i].tensor);
  if (capture_->replay()) {
    ++replays_;
    return true;
  }
  capture_ = nullptr;
  if (++lost_ == kWarnAfter)
    warn(
        str("captured_step: expected gradients, parameters and states of optimizers that stay the "
            "same tensors between calls, got others ",
            lost_, " times; each time the step is recorded again"));
  // this call was a plain one; the next one records
  plain_calls_ = options_.warm_up;
  return false;
}

}  // namespace braid::training::detail
