#include <algorithm>
#include <cmath>
#include <set>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/statistics_type.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/nn/internal/phases.hpp>
#include <braid/nn/optim.hpp>

#include "optim/fused.hpp"

namespace braid::optim {

using ::braid::detail::StepCapture;

namespace {

void check_not_recorded(const char* function) {
  StepCapture::refuse(function, "a call outside of a captured step, before or after it");
}

/// Throws if a parameter is expanded. Checked early, because writing to it would fail only after
/// other parameters were updated.
void check_writable(const char* name, const TensorImpl& p, std::size_t i) {
  for (int d = 0; !p.contiguous && p.numel > 0 && d < p.shape.rank(); ++d)
    if (p.shape[d] > 1 && p.strides[d] == 0)
      throw LayoutError(str(name,
                            ": expected parameters whose elements each have their own memory, got "
                            "an expanded one at position ",
                            i));
}

}  // namespace

void detail::Joined::add(const std::vector<Tensor>& of_group, std::size_t group) {
  parameters.insert(parameters.end(), of_group.begin(), of_group.end());
  group_of.resize(parameters.size(), group);
}

void detail::check_at_least_0(const char* name, const char* what, double value) {
  if (!(value >= 0) || std::isinf(value))
    throw ArgumentError(str(name, ": expected ", what, " >= 0, got ", value));
}
void detail::check_below_1(const char* name, const char* what, double value) {
  if (!(value >= 0 && value < 1))
    throw ArgumentError(str(name, ": expected 0 <= ", what, " < 1, got ", value));
}

Optimizer::Optimizer(const Traits& traits, std::vector<Tensor> parameters,
                     std::vector<std::size_t> group_of, std::vector<Kept> kept)
    : traits_(traits),
      name_(traits.name),
      parameters_(std::move(parameters)),
      group_of_(std::move(group_of)),
      kept_(std::move(kept)),
      updates_(std::make_unique<detail::Updates>()) {
  const char* const name = name_;
  if (parameters_.empty())
    throw ArgumentError(str(name, ": expected at least one parameter, got 0"));
  std::set<const TensorImpl*> seen;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = parameters_[i];
    if (!p.defined())
      throw ArgumentError(
          str(name, ": expected defined parameters, got an undefined one at position ", i));
    if (!p.is_leaf())
      throw ArgumentError(str(
          name, ": expected parameters that are leaves, got one that an op made at position ", i));
    if (!is_floating(p.dtype()))
      throw DTypeError(
          str(name, ": expected floating point parameters, got ", p.dtype(), " at position ", i));
    check_writable(name, *p.impl(), i);
    if (!seen.insert(p.id()).second)
      throw ArgumentError(
          str(name, ": expected every parameter once, got the one at position ", i, " twice"));
  }
  const std::string_view names[] = {traits.states.m, traits.states.v, traits.states.s};
  for (std::size_t k = 0; k < kStates; ++k)
    if (!names[k].empty()) state_[k].resize(parameters_.size());
  steps_ = nn::Buffer(zeros({static_cast<std::int64_t>(parameters_.size())},
                            {.device = Device(), .dtype = DType::int64}));
  updates_->all.reserve(parameters_.size());
  updates_->of_batch.reserve(parameters_.size());
  done_.reserve(parameters_.size());
  batches_.reserve(parameters_.size());
  updated_.reserve(parameters_.size());
}

Optimizer::~Optimizer() = default;

void Optimizer::update(const Batch&, const detail::Update&) {
  throw InternalError(str(name_, ": expected an update or a compute, got neither"));
}
void Optimizer::compute(Values&, std::size_t, std::int64_t) const {
  throw InternalError(str(name_, ": expected a compute, got none"));
}

bool Optimizer::keeps(std::size_t group, std::size_t k) const noexcept {
  const Kept& kept = kept_[group];
  return !state_[k].empty() && (k == 0 ? kept.m : k == 1 ? kept.v : kept.s);
}

std::int64_t Optimizer::batch_key(std::size_t group, std::int64_t steps) const noexcept {
  switch (kept_[group].key) {
    case Key::is_first: return steps == 0;
    case Key::steps: return steps;
    default: return 0;
  }
}

void Optimizer::check_group(const char* what, std::size_t group) const {
  if (group >= groups())
    throw IndexError(
        str(name_, ": ", what, ": expected a group below ", groups(), ", got ", group));
}

double Optimizer::lr(std::size_t group) const {
  check_group("lr", group);
  return mutable_self().lr_of(group);
}

void Optimizer::set_lr(double lr) {
  check_not_recorded("set_lr");
  detail::check_at_least_0(name_, "lr", lr);
  for (std::size_t g = 0; g < groups(); ++g) lr_of(g) = lr;
}

void Optimizer::set_lr(std::size_t group, double lr) {
  check_not_recorded("set_lr");
  check_group("set_lr", group);
  detail::check_at_least_0(name_, "lr", lr);
  lr_of(group) = lr;
}

double Optimizer::momentum(std::size_t group) const {
  check_group("momentum", group);
  const double* found = mutable_self().momentum_of(group);
  if (!found)
    throw ArgumentError(
        str(name_, ": expected an optimizer made with momentum or beta1, got one without"));
  return *found;
}

bool Optimizer::has_momentum(std::size_t group) const {
  check_group("has_momentum", group);
  return mutable_self().momentum_of(group) != nullptr;
}

void Optimizer::set_momentum(std::size_t group, double momentum) {
  check_not_recorded("set_momentum");
  (void)this->momentum(group);
  detail::check_below_1(name_, "momentum", momentum);
  *momentum_of(group) = momentum;
}

void Optimizer::follow(const Optimizer& other) {
  check_not_recorded("follow");
  if (other.groups() != groups())
    throw ArgumentError(
        str(name_, ": follow: expected ", groups(), " groups, got ", other.groups()));
  Optimizer& from = other.mutable_self();
  for (std::size_t g = 0; g < groups(); ++g) {
    lr_of(g) = from.lr_of(g);
    const double* const momentum = from.momentum_of(g);
    if (double* const mine = momentum_of(g); mine && momentum) *mine = *momentum;
  }
}

std::int64_t Optimizer::steps(std::size_t i) const {
  if (i >= parameters_.size())
    throw IndexError(
        str(name_, ": steps: expected an index below ", parameters_.size(), ", got ", i));
  return steps_.to(Device()).data<std::int64_t>()[i];
}

void Optimizer::zero_grad() noexcept {
  StepCapture* const capture = StepCapture::current();
  for (const Tensor& p : parameters_) {
    if (capture) capture->replaces_grad(*p.impl());
    p.impl()->grad = {};
  }
}

/// Creates the state tensor, or converts it to the parameter's device and dtype.
void Optimizer::prepare_state(nn::Buffer& state, const Tensor& parameter, double first) {
  StepCapture::refuse(name_,
                      "an optimizer whose state exists before the step is captured, got one "
                      "without a state of a parameter");
  const NoGrad guard;
  Tensor made = state.defined() ? state.to(parameter.device(), parameter.dtype())
                                : full(parameter.shape(), first,
                                       {.device = parameter.device(), .dtype = parameter.dtype()});
  state = nn::Buffer(made.contiguous());
}

/// Returns the prepared factor of gradients of a dtype, or null.
const Tensor* Optimizer::factor_of(Device device, DType dtype) const noexcept {
  for (const Tensor& made : factors_)
    if (made.device() == device && made.dtype() == statistics_type(dtype)) return &made;
  return nullptr;
}

void Optimizer::prepare_step() { prepare(nullptr); }
void Optimizer::prepare_step(const Tensor& grad_factor) {
  if (!grad_factor.defined())
    throw ArgumentError(str(name_, ": step: expected a defined grad_factor, got an undefined one"));
  if (!is_floating(grad_factor.dtype()))
    throw DTypeError(
        str(name_, ": step: expected a floating point grad_factor, got ", grad_factor.dtype()));
  if (grad_factor.numel() != 1)
    throw ShapeError(str(name_, ": step: expected a grad_factor of one element, got shape ",
                         grad_factor.shape()));
  prepare(&grad_factor);
}

/// Checks everything and fills updates_. Writes nothing except state tensors that were not visible
/// before. If it throws, nothing is prepared.
void Optimizer::prepare(const Tensor* grad_factor) try {
  updates_->all.clear();
  factors_.clear();
  batches_.clear();
  updated_.clear();
  dense_.clear();
  one_batch_ = true;
  StepCapture* const capture = StepCapture::current();
  if (!traits_.has_kernel)
    StepCapture::refuse(
        name_, "a captured step whose optimizers have a kernel, got one that computes with ops");
  // a move of the whole state tree moves this too
  if (steps_.impl()->device != Device()) steps_ = nn::Buffer(steps_.to(Device()));
  const auto* steps = static_cast<const std::int64_t*>(steps_.impl()->data());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const TensorImpl& p = *parameters_[i].impl();
    if (capture) capture->reads_grad(*parameters_[i].impl());
    if (!p.grad) continue;
    const TensorImpl& g = *p.grad;
    check_writable(name_, p, i);
    if (g.shape != p.shape)
      throw ShapeError(str(name_, ": expected the gradient of parameter ", i, " to have its shape ",
                           p.shape, ", got ", g.shape));
    if (g.dtype != p.dtype)
      throw DTypeError(str(name_, ": expected the gradient of parameter ", i, " to be ", p.dtype,
                           ", got ", g.dtype));
    if (g.device != p.device)
      throw DeviceError(str(name_, ": expected the gradient of parameter ", i, " on ", p.device,
                            ", got ", g.device));
    const std::size_t group = group_of_[i];
    const Batch batch{p.device, p.dtype, group, batch_key(group, steps[i])};
    if (batches_.empty() || batches_.back().device != p.device) {
      if (traits_.has_kernel && !traits_.has_kernel(p.device))
        ::braid::detail::no_kernel(name_, p.device);
    }
    one_batch_ = one_batch_ && (batches_.empty() || batch == batches_.front());
    OptimItem item{nullptr, nullptr, nullptr, nullptr, p.numel};
    for (std::size_t k = 0; k < kStates; ++k) {
      if (!keeps(group, k)) continue;
      nn::Buffer& kept = state_[k][i];
      if (!kept.defined() || kept.device() != p.device || kept.dtype() != p.dtype ||
          !kept.is_contiguous())
        prepare_state(kept, parameters_[i], kept_[group].first);
      (k == 0 ? item.m : k == 1 ? item.v : item.s) = kept.impl()->data();
    }
    if (!traits_.has_kernel) {
      // compute() takes the tensors themselves
    } else if (p.contiguous && g.contiguous) {
      item.p = p.data();
      item.g = g.data();
    } else {
      const NoGrad guard;
      const Tensor& parameter = parameters_[i];
      Dense dense{p.contiguous ? Tensor() : parameter, parameter.detach().contiguous(),
                  Tensor(p.grad).detach().contiguous()};
      item.p = dense.copy.impl()->data();
      item.g = dense.grad.impl()->data();
      dense_.push_back(std::move(dense));
    }
    if (grad_factor && !factor_of(p.device, p.dtype)) {
      const NoGrad guard;
      factors_.push_back(grad_factor->detach().to(p.device, statistics_type(p.dtype)).contiguous());
    }
    updates_->all.push_back(item);
    batches_.push_back(batch);
    updated_.push_back(i);
  }
  if (!traits_.has_kernel) compute_all();
} catch (...) {
  updates_->all.clear();
  dense_.clear();
  computed_.clear();
  factors_.clear();
  throw;
}

/// Computes the new values of all parameters that have a gradient, and of their state. Writes
/// nothing.
void Optimizer::compute_all() {
  const NoGrad guard;
  computed_.clear();
  const auto* steps = static_cast<const std::int64_t*>(steps_.impl()->data());
  for (const std::size_t i : updated_) {
    const DType dtype = parameters_[i].dtype(), wide = statistics_type(dtype);
    const auto widened = [&](const Tensor& t) { return t.defined() ? t.detach().to(wide) : t; };
    const auto state = [&](std::size_t k) {
      return keeps(group_of_[i], k) ? widened(state_[k][i]) : Tensor();
    };
    Tensor gradient = widened(parameters_[i].grad());
    if (const Tensor* const factor = factor_of(parameters_[i].device(), dtype))
      gradient = mul(gradient, factor->reshape({})).to(dtype).to(wide);
    Values values{widened(parameters_[i]), gradient, state(0), state(1), state(2)};
    compute(values, group_of_[i], steps[i] + 1);
    Computed& computed = computed_.emplace_back(Computed{i, values.p.to(dtype), {}});
    const Tensor* const states[] = {&values.m, &values.v, &values.s};
    for (std::size_t k = 0; k < kStates; ++k)
      if (keeps(group_of_[i], k)) computed.state[k] = states[k]->to(dtype);
  }
}

void Optimizer::write_computed() {
  const NoGrad guard;
  for (const Computed& c : computed_) {
    parameters_[c.i].copy_(c.p);
    for (std::size_t k = 0; k < kStates; ++k)
      if (c.state[k].defined()) state_[k][c.i].copy_(c.state[k]);
  }
  computed_.clear();
}

/// Calls update() once for each batch, with its parameters in order.
void Optimizer::update_batches() {
  const std::vector<OptimItem>& items = updates_->all;
  const auto update_all = [&](const Batch& batch, std::span<const OptimItem> list) {
    const Tensor* const factor = factor_of(batch.device, batch.dtype);
    update(batch, {list, factor ? factor->impl()->data() : nullptr});
  };
  if (one_batch_) {
    first_of_batch_ = updated_.front();
    update_all(batches_.front(), items);
    return;
  }
  std::vector<OptimItem>& of_batch = updates_->of_batch;
  done_.assign(items.size(), 0);
  for (std::size_t begin = 0; begin < items.size(); ++begin) {
    if (done_[begin]) continue;
    of_batch.clear();
    for (std::size_t i = begin; i < items.size(); ++i) {
      if (done_[i] || batches_[i] != batches_[begin]) continue;
      done_[i] = 1;
      of_batch.push_back(items[i]);
    }
    first_of_batch_ = updated_[begin];
    update_all(batches_[begin], of_batch);
  }
}

void Optimizer::step() {
  const trace::Span span("optimizer", nn::detail::kOptimizerPhase, parameters_.front().device());
  prepare_step();
  finish_step_or_warn();
}
void Optimizer::step(const Tensor& grad_factor) {
  const trace::Span span("optimizer", nn::detail::kOptimizerPhase, parameters_.front().device());
  prepare_step(grad_factor);
  finish_step_or_warn();
}

void Optimizer::finish_step_or_warn() {
  if (updates_->all.empty() && !warned_) warn_of_no_gradient();
  finish_step();
}

void Optimizer::warn_of_no_gradient() {
  warned_ = true;
  bool required = false;
  for (const Tensor& p : parameters_) required = required || p.requires_grad();
  warn(str(name_, ": step: expected a gradient of at least one of ", parameters_.size(),
           " parameters, got none, so nothing was updated",
           required ? ". Was a copy of the model trained? A function that takes a model by value "
                      "(`void f(Net net)`) trains one of its own: take it by reference. Or was "
                      "zero_grad called between backward and step?"
                    : ": none requires one (requires_grad_(model) thaws them)"));
}

void Optimizer::finish_step() {
  if (updates_->all.empty()) return;
  if (traits_.has_kernel) update_batches();
  else write_computed();
  updates_->all.clear();  // a second call does nothing
  for (const Dense& dense : dense_) {
    if (!dense.parameter.defined()) continue;
    const NoGrad guard;
    dense.parameter.copy_(dense.copy);
  }
  dense_.clear();
  factors_.clear();
  auto* steps = static_cast<std::int64_t*>(steps_.impl()->data());
  for (const std::size_t i : updated_) {
    parameters_[i].impl()->storage->bump_version();
    for (const std::vector<nn::Buffer>& kept : state_)
      if (!kept.empty() && kept[i].defined()) kept[i].impl()->storage->bump_version();
    ++steps[i];
  }
  steps_.impl()->storage->bump_version();
  if (StepCapture::current()) record_step();
}

std::function<std::int64_t()> Optimizer::key_at_replay(const Batch& batch) const {
  if (!StepCapture::current()) return {};
  return [this, group = batch.group, i = first_of_batch_] {
    return batch_key(group, static_cast<const std::int64_t*>(steps_.impl()->data())[i]);
  };
}

/// The step that was just done is part of a captured step: replays count it, and require that its
/// tensors and its batches are still the same.
void Optimizer::record_step() {
  StepCapture& capture = *StepCapture::current();
  // First, because the others read the optimizer. Its tensors may outlive it in a state_dict.
  capture.require("an optimizer that is gone",
                  [alive = std::weak_ptr(updates_->alive)] { return !alive.expired(); });
  const auto count = [this, updated = updated_](std::int64_t by) {
    if (steps_.impl()->device != Device()) steps_ = nn::Buffer(steps_.to(Device()));
    for (const std::size_t i : updated) static_cast<std::int64_t*>(steps_.impl()->data())[i] += by;
  };
  capture.on_replay([count] { count(1); }, [count] { count(-1); });
  // what is compared before each replay: no list is made there
  const auto address = [this](std::size_t i, const std::vector<nn::Buffer>* kept) -> const void* {
    if (kept == nullptr) return parameters_[i].impl()->data();
    return !kept->empty() && (*kept)[i].defined() ? (*kept)[i].impl()->data() : nullptr;
  };
  std::vector<const void*> recorded;
  for (const std::size_t i : updated_) {
    recorded.push_back(address(i, nullptr));
    for (const std::vector<nn::Buffer>& kept : state_) recorded.push_back(address(i, &kept));
  }
  capture.require("the memory of a parameter or of an optimizer's state",
                  [this, address, updated = updated_, recorded = std::move(recorded)] {
                    std::size_t at = 0;
                    for (const std::size_t i : updated) {
                      if (address(i, nullptr) != recorded[at++]) return false;
                      for (const std::vector<nn::Buffer>& kept : state_)
                        if (address(i, &kept) != recorded[at++]) return false;
                    }
                    return true;
                  });
  // parameters of one launch must have one key: the first one's
  struct Launched {
    std::size_t parameter, group, first;
  };
  std::vector<Launched> launched;
  for (std::size_t k = 0; k < updated_.size(); ++k) {
    const auto same = std::find(batches_.begin(), batches_.end(), batches_[k]);
    launched.push_back({updated_[k], batches_[k].group,
                        updated_[static_cast<std::size_t>(same - batches_.begin())]});
  }
  capture.require("the number of steps of some of an optimizer's parameters",
                  [this, launched = std::move(launched)] {
                    if (steps_.impl()->device != Device()) return false;
                    const auto* steps = static_cast<const std::int64_t*>(steps_.impl()->data());
                    return std::all_of(launched.begin(), launched.end(), [&](const Launched& l) {
                      return batch_key(l.group, steps[l.parameter]) ==
                             batch_key(l.group, steps[l.first]);
                    });
                  });
}

}  // namespace braid::optim
