// Ops in LibTorch's form: what is saved, and the node that calls backward.
#include <braid/core/function.hpp>

#include <algorithm>

#include <braid/core/ops/create.hpp>

#include "ops/common.hpp"

namespace braid {
namespace autograd {

double SavedValue::toDouble() const { return get<Scalar>().to_double(); }
std::int64_t SavedValue::toInt() const { return get<Scalar>().to<std::int64_t>(); }
bool SavedValue::toBool() const { return get<Scalar>().to<bool>(); }
Scalar SavedValue::toScalar() const { return get<Scalar>(); }
Tensor SavedValue::toTensor() const { return get<Tensor>(); }
std::vector<std::int64_t> SavedValue::toIntVector() const {
  return get<std::vector<std::int64_t>>();
}
const std::string& SavedValue::toStringRef() const { return get<std::string>(); }
void SavedValue::other_kind() const {
  throw ArgumentError(str("saved_data: expected a value of the type that is asked for, got ",
                          value_.has_value() ? braid::detail::type_name(value_.type().name())
                                             : "none; forward has not assigned it"));
}

void AutogradContext::save_for_backward(variable_list tensors) { to_save_ = std::move(tensors); }
void AutogradContext::mark_dirty(const variable_list& inputs) { dirty_ = inputs; }
void AutogradContext::mark_non_differentiable(const variable_list& outputs) { constant_ = outputs; }
bool AutogradContext::needs_input_grad(std::size_t index) const { return needs_.at(index); }

variable_list AutogradContext::get_saved_variables() const {
  variable_list all;
  for (const SavedTensor& saved : saved_) all.push_back(saved.get());
  return all;
}

variable_list grad(const variable_list& outputs, const variable_list& inputs,
                   const variable_list& grad_outputs, std::optional<bool> retain_graph,
                   bool create_graph, bool allow_unused) {
  return braid::grad(std::span<const Tensor>(outputs), inputs, grad_outputs,
                     retain_graph.value_or(create_graph), create_graph, allow_unused);
}
void backward(const variable_list& tensors, const variable_list& grad_tensors,
              std::optional<bool> retain_graph, bool create_graph) {
  braid::backward(tensors, grad_tensors, retain_graph.value_or(create_graph), create_graph);
}

}  // namespace autograd

namespace detail {

void FunctionArguments::add_tensor(const Tensor& t) {
  is_tensor.push_back(true);
  tensors.push_back(t);
}
void FunctionArguments::add_other() { is_tensor.push_back(false); }

namespace {

bool is_among(const Tensor& t, std::span<const Tensor> list) {
  return t.defined() && std::any_of(list.begin(), list.end(),
                                    [&](const Tensor& other) { return other.is_same(t); });
}

/// What the gradient of a tensor looks like.
struct Like {
  Shape shape;
  DType dtype;
  Device device;

  Like() : shape{0}, dtype(DType::float32) {}
  explicit Like(const Tensor& t) : Like() {
    if (t.defined()) shape = t.shape(), dtype = t.dtype(), device = t.device();
  }
};

bool broadcasts_to(const Shape& from, const Shape& to) {
  const int more = to.rank() - from.rank();
  if (more < 0) return false;
  for (int d = 0; d < from.rank(); ++d)
    if (from[d] != to[d + more] && from[d] != 1) return false;
  return true;
}

/// Returns the gradient that backward made for argument `i`, as its input needs it: summed over the
/// dims that forward broadcast, and in the input's dtype. Recorded.
Tensor for_input(const char* name, std::size_t i, Tensor g, const Like& x) {
  if (!g.defined()) return g;
  if (g.device() != x.device && g.dim() == 0) g = g.to(x.device);
  if (g.device() != x.device || !broadcasts_to(x.shape, g.shape()))
    throw AutogradError(str(name, "::backward: expected as gradient ", i, " a tensor on ", x.device,
                            " of shape ", x.shape, " or one that this broadcasts to, got ",
                            g.shape(), " on ", g.device()));
  return ops::sum_to(g, x.shape).to(x.dtype);
}

/// Those of the gradients that belong to tensors among the arguments.
Grads of_tensors(const char* name, const std::vector<bool>& is_tensor, std::span<const Like> inputs,
                 Needs needs, const std::vector<Tensor>& gradients) {
  const std::size_t count = is_tensor.size();
  bool more = false;
  for (std::size_t i = count; i < gradients.size(); ++i) more = more || gradients[i].defined();
  if (gradients.size() < count || more)
    throw AutogradError(str(name, "::backward: expected ", count,
                            " gradients, one for each argument of forward, got ",
                            gradients.size()));
  std::vector<Tensor> chosen;
  for (std::size_t i = 0; i < count; ++i) {
    if (const std::size_t k = chosen.size(); is_tensor[i])
      chosen.push_back(needs[k] ? for_input(name, i, gradients[i], inputs[k]) : Tensor());
    else if (gradients[i].defined())
      throw AutogradError(str(name, "::backward: expected an undefined Tensor() as gradient ", i,
                              ", since that argument of forward is no tensor, got one of shape ",
                              gradients[i].shape()));
  }
  return Grads(std::move(chosen));
}

void check_dirty(const char* name, std::span<const Tensor> dirty, std::span<const Tensor> inputs,
                 std::span<const Tensor> outputs) {
  for (const Tensor& t : dirty) {
    if (!is_among(t, inputs) || !is_among(t, outputs))
      throw AutogradError(str(name,
                              ": mark_dirty: expected inputs that forward returns, got another "
                              "tensor"));
    // the base of a view would not learn of the change
    if (t.id()->view_kind != ViewKind::none || (t.requires_grad() && !t.id()->grad_fn))
      throw AutogradError(str(name,
                              ": mark_dirty: expected a tensor that is neither a view nor a leaf "
                              "requiring grad, got one of shape ",
                              t.shape()));
  }
}

}  // namespace

void record_function(const char* name, const std::shared_ptr<autograd::AutogradContext>& context,
                     const FunctionArguments& arguments, std::vector<Tensor>& outputs,
                     FunctionBackward backward) {
  autograd::AutogradContext& ctx = *context;
  const std::span<const Tensor> inputs = arguments.tensors;
  const std::vector<Tensor> to_save = std::exchange(ctx.to_save_, {}),
                            dirty = std::exchange(ctx.dirty_, {}),
                            constant = std::exchange(ctx.constant_, {});
  bool recorded = false;
  for (const Tensor& t : inputs)
    recorded = recorded || (grad_enabled() && t.defined() && t.requires_grad());
  if (!recorded) return;
  check_dirty(name, dirty, inputs, outputs);
  std::vector<Tensor> differentiable;
  std::vector<Like> like, of_inputs(inputs.begin(), inputs.end());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    Tensor& y = outputs[k];
    const bool has_gradient = y.defined() && !is_among(y, constant) && is_floating(y.dtype());
    // An output that is an input, or that has a graph, keeps it; the result is another handle.
    if (y.defined() && !is_among(y, dirty) &&
        (is_among(y, inputs) || y.requires_grad() || is_among(y, differentiable)))
      y = y.detach();
    differentiable.push_back(has_gradient ? y : Tensor());
    like.emplace_back(y);
  }
  for (const Tensor& t : to_save) {
    const auto same = std::find_if(differentiable.begin(), differentiable.end(),
                                   [&](const Tensor& y) { return y.defined() && y.is_same(t); });
    if (!t.defined()) ctx.saved_.emplace_back();
    else if (same == differentiable.end()) ctx.saved_.emplace_back(t);
    else
      ctx.saved_.push_back(
          SavedTensor::output(t, static_cast<std::uint32_t>(same - differentiable.begin())));
  }
  const auto first = std::find_if(differentiable.begin(), differentiable.end(),
                                  [](const Tensor& y) { return y.defined(); });
  if (first == differentiable.end()) return;
  const Device device = first->device();
  record_many(name, inputs, differentiable, device,
              [name, context, like = std::move(like), of_inputs = std::move(of_inputs),
               is_tensor = arguments.is_tensor,
               backward](std::span<const Tensor> dys, Needs needs) -> Grads {
                std::vector<Tensor> gradients(dys.begin(), dys.end());
                for (std::size_t k = 0; k < gradients.size() && context->materializes_; ++k)
                  if (!gradients[k].defined())
                    gradients[k] =
                        zeros(like[k].shape, {.device = like[k].device, .dtype = like[k].dtype});
                context->needs_.clear();
                for (std::size_t i = 0; i < of_inputs.size(); ++i)
                  context->needs_.push_back(needs[i]);
                return of_tensors(name, is_tensor, of_inputs, needs,
                                  backward(context.get(), std::move(gradients)));
              });
}

}  // namespace detail
}  // namespace braid
