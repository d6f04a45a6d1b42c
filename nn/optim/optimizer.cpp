#include <cmath>
#include <set>

#include <braid/core/autograd.hpp>
#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/nn/optim.hpp>

namespace braid::optim {
namespace {

/// An expanded parameter could not be written to when the others have been.
void check_writable(const char* name, const TensorImpl& p, std::size_t i) {
  for (int d = 0; !p.contiguous && p.numel > 0 && d < p.shape.rank(); ++d)
    if (p.shape[d] > 1 && p.strides[d] == 0)
      throw LayoutError(str(name, ": expected parameters whose elements each have their own memory, got an expanded one at position ", i));
}

}  // namespace

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
    check_writable(name, *p.impl(), i);
    if (!seen.insert(p.id()).second) throw ArgumentError(str(name, ": expected every parameter once, got the one at position ", i, " twice"));
  }
  for (std::size_t k = 0; k < state_names_.size(); ++k) this->state(k).resize(parameters_.size());
  steps_ = nn::Buffer(zeros({static_cast<std::int64_t>(parameters_.size())}, {.dtype = DType::int64}));
  items_.reserve(parameters_.size());
  of_group_.reserve(parameters_.size());
  done_.reserve(parameters_.size());
  groups_.reserve(parameters_.size());
  updated_.reserve(parameters_.size());
}

Optimizer::~Optimizer() = default;

void Optimizer::set_lr(double lr) {
  if (!(lr >= 0) || std::isinf(lr)) throw ArgumentError(str(name_, ": expected lr >= 0, got ", lr));
  lr_ = lr;
}

std::int64_t Optimizer::steps(std::size_t i) const {
  if (i >= parameters_.size()) throw IndexError(str(name_, ": steps: expected an index below ", parameters_.size(), ", got ", i));
  return steps_.to(Device()).data<std::int64_t>()[i];
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

/// Checks everything and fills items_. Writes nothing but state that nobody has seen yet.
void Optimizer::prepare() {
  items_.clear();
  groups_.clear();
  updated_.clear();
  dense_.clear();
  one_group_ = true;
  if (steps_.impl()->device != Device()) steps_ = nn::Buffer(steps_.to(Device()));  // the tree was moved as a whole
  const auto* steps = static_cast<const std::int64_t*>(steps_.impl()->data());
  const std::size_t states = state_names_.size();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const TensorImpl& p = *parameters_[i].impl();
    if (!p.grad) continue;
    const TensorImpl& g = *p.grad;
    check_writable(name_, p, i);
    if (g.shape != p.shape) throw ShapeError(str(name_, ": expected the gradient of parameter ", i, " to have its shape ", p.shape, ", got ", g.shape));
    if (g.dtype != p.dtype) throw DTypeError(str(name_, ": expected the gradient of parameter ", i, " to be ", p.dtype, ", got ", g.dtype));
    if (g.device != p.device) throw DeviceError(str(name_, ": expected the gradient of parameter ", i, " on ", p.device, ", got ", g.device));
    const Group group{p.device, p.dtype, group_key(steps[i])};
    if (groups_.empty() || groups_.back().device != p.device) {
      if (!has_kernel(*device_context(p.device).kernels)) ::braid::detail::no_kernel(name_, p.device);
    }
    one_group_ = one_group_ && (groups_.empty() || group == groups_.front());
    OptimItem item{nullptr, nullptr, nullptr, nullptr, p.numel};
    for (std::size_t k = 0; k < states; ++k) {
      nn::Buffer& kept = state(k)[i];
      if (!kept.defined() || kept.device() != p.device || kept.dtype() != p.dtype || !kept.is_contiguous()) prepare_state(kept, parameters_[i]);
      (k == 0 ? item.m : item.v) = kept.impl()->data();
    }
    if (p.contiguous && g.contiguous) {
      item.p = p.data();
      item.g = g.data();
    } else {
      const NoGrad guard;
      const Tensor& parameter = parameters_[i];
      Dense dense{p.contiguous ? Tensor() : parameter, parameter.detach().contiguous(), Tensor(p.grad).detach().contiguous()};
      item.p = dense.copy.impl()->data();
      item.g = dense.grad.impl()->data();
      dense_.push_back(std::move(dense));
    }
    items_.push_back(item);
    groups_.push_back(group);
    updated_.push_back(i);
  }
}

/// One call for each group, its parameters in their order.
void Optimizer::update_groups() {
  if (one_group_) {
    update(groups_.front(), items_);
    return;
  }
  done_.assign(items_.size(), 0);
  for (std::size_t begin = 0; begin < items_.size(); ++begin) {
    if (done_[begin]) continue;
    of_group_.clear();
    for (std::size_t i = begin; i < items_.size(); ++i) {
      if (done_[i] || groups_[i] != groups_[begin]) continue;
      done_[i] = 1;
      of_group_.push_back(items_[i]);
    }
    update(groups_[begin], of_group_);
  }
}

void Optimizer::step() {
  prepare();
  if (items_.empty()) return;
  update_groups();
  for (const Dense& dense : dense_) {
    if (!dense.parameter.defined()) continue;
    const NoGrad guard;
    dense.parameter.copy_(dense.copy);
  }
  dense_.clear();
  auto* steps = static_cast<std::int64_t*>(steps_.impl()->data());
  const std::size_t states = state_names_.size();
  for (const std::size_t i : updated_) {
    parameters_[i].impl()->storage->bump_version();
    for (std::size_t k = 0; k < states; ++k) state(k)[i].impl()->storage->bump_version();
    ++steps[i];
  }
  steps_.impl()->storage->bump_version();
}

}  // namespace braid::optim
