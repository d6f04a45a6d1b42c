#include <cmath>
#include <set>

#include <braid/core/autograd.hpp>
#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/nn/optim.hpp>

namespace braid::optim {

Optimizer::Optimizer(const char* name, std::vector<Tensor> parameters, double lr, std::vector<std::string_view> state)
    : name_(name), lr_(0), parameters_(std::move(parameters)), state_names_(std::move(state)) {
  set_lr(lr);
  if (parameters_.empty()) throw ArgumentError(str(name, ": expected at least one parameter, got 0"));
  std::set<const TensorImpl*> seen;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = parameters_[i];
    if (!p.defined()) throw ArgumentError(str(name, ": expected defined parameters, got an undefined one at position ", i));
    if (!p.is_leaf()) throw ArgumentError(str(name, ": expected parameters that are leaves, got one that an op made at position ", i));
    if (!is_floating(p.dtype())) throw DTypeError(str(name, ": expected floating point parameters, got ", p.dtype(), " at position ", i));
    if (!seen.insert(p.id()).second) throw ArgumentError(str(name, ": expected every parameter once, got the one at position ", i, " twice"));
  }
  for (std::size_t k = 0; k < state_names_.size(); ++k) this->state(k).resize(parameters_.size());
  steps_ = nn::Buffer(zeros({static_cast<std::int64_t>(parameters_.size())}, {.dtype = DType::int64}));
  entries_.reserve(parameters_.size());
  items_.reserve(parameters_.size());
}

Optimizer::~Optimizer() = default;

void Optimizer::set_lr(double lr) {
  if (!(lr >= 0) || std::isinf(lr)) throw ArgumentError(str(name_, ": expected lr >= 0, got ", lr));
  lr_ = lr;
}

std::int64_t Optimizer::steps(std::size_t i) const {
  if (i >= parameters_.size()) throw IndexError(str(name_, ": steps: expected an index below ", parameters_.size(), ", got ", i));
  return steps_.data<std::int64_t>()[i];
}

void Optimizer::zero_grad() noexcept {
  for (const Tensor& p : parameters_) p.impl()->grad = {};
}

/// Makes the state, or brings it to where the parameter is now.
void Optimizer::prepare_state(nn::Buffer& state, const Tensor& parameter) {
  const NoGrad guard;
  Tensor made =
      state.defined() ? state.to(parameter.device(), parameter.dtype()) : zeros(parameter.shape(), {.device = parameter.device(), .dtype = parameter.dtype()});
  state = nn::Buffer(made.contiguous());
}

/// Checks everything and fills entries_. Writes nothing but state that nobody has seen yet.
void Optimizer::prepare() {
  const std::int64_t* steps = steps_.data<std::int64_t>();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i];
    const TensorImpl& p = *parameter.impl();
    if (!p.grad) continue;
    const TensorImpl& g = *p.grad;
    if (g.shape != p.shape) throw ShapeError(str(name_, ": expected the gradient of parameter ", i, " to have its shape ", p.shape, ", got ", g.shape));
    if (g.dtype != p.dtype) throw DTypeError(str(name_, ": expected the gradient of parameter ", i, " to be ", p.dtype, ", got ", g.dtype));
    if (g.device != p.device) throw DeviceError(str(name_, ": expected the gradient of parameter ", i, " on ", p.device, ", got ", g.device));
    Entry entry{{nullptr, nullptr, nullptr, nullptr, p.numel}, {p.device, p.dtype, group_key(steps[i])}, i, false};
    if (entries_.empty() || entries_.back().group.device != p.device) {
      if (!has_kernel(*device_context(p.device).kernels)) ::braid::detail::no_kernel(name_, p.device);
    }
    void** const into[] = {&entry.item.m, &entry.item.v};
    for (std::size_t k = 0; k < state_names_.size(); ++k) {
      nn::Buffer& state = this->state(k)[i];
      if (!state.defined() || state.device() != p.device || state.dtype() != p.dtype || !state.is_contiguous()) prepare_state(state, parameter);
      *into[k] = state.impl()->data();
    }
    if (p.contiguous && g.contiguous) {
      entry.item.p = p.data();
      entry.item.g = g.data();
    } else {
      const NoGrad guard;
      Dense dense{p.contiguous ? Tensor() : parameter, parameter.detach().contiguous(), Tensor(p.grad).detach().contiguous()};
      entry.item.p = dense.copy.impl()->data();
      entry.item.g = dense.grad.impl()->data();
      dense_.push_back(std::move(dense));
    }
    entries_.push_back(entry);
  }
}

void Optimizer::step() {
  entries_.clear();
  dense_.clear();
  prepare();
  std::int64_t* steps = steps_.data<std::int64_t>();
  std::size_t done = 0;
  for (std::size_t begin = 0; done < entries_.size(); ++begin) {
    if (entries_[begin].done) continue;
    const Group group = entries_[begin].group;
    items_.clear();
    for (std::size_t i = begin; i < entries_.size(); ++i) {
      Entry& entry = entries_[i];
      if (entry.done || entry.group != group) continue;
      entry.done = true;
      items_.push_back(entry.item);
    }
    done += items_.size();
    update(group, items_);
  }
  for (const Dense& dense : dense_) {
    if (!dense.parameter.defined()) continue;
    const NoGrad guard;
    dense.parameter.copy_(dense.copy);
  }
  for (const Entry& entry : entries_) {
    const std::size_t i = entry.parameter;
    parameters_[i].impl()->storage->bump_version();
    for (std::size_t k = 0; k < state_names_.size(); ++k) state(k)[i].impl()->storage->bump_version();
    ++steps[i];
  }
  if (!entries_.empty()) steps_.impl()->storage->bump_version();
  dense_.clear();
}

}  // namespace braid::optim
