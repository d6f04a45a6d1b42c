#include <braid/core/autograd.hpp>

#include <algorithm>

#include "checkpoint.hpp"
#include "engine.hpp"
#include "hooks.hpp"
#include "tensor/runtimes.hpp"

namespace braid {

using autograd::Edge;
using autograd::Node;

namespace {
// The check is in this file because every program that uses Braid links it.
[[maybe_unused]] const bool runtimes_checked = (detail::check_runtimes(), true);

thread_local ThreadState state;
thread_local Node* current_node = nullptr;  // the node whose backward runs on this thread
}  // namespace

ThreadState& thread_state() noexcept { return state; }

namespace detail {
Node* running_node() noexcept { return current_node; }
RunningNode::RunningNode(Node* node) noexcept : before_(current_node) { current_node = node; }
RunningNode::~RunningNode() { current_node = before_; }

void already_freed(const char* name) {
  throw AutogradError(str(
      "backward: expected a graph that is still there, got one that an earlier backward freed (at ",
      name, "); pass retain_graph = true to that backward"));
}

void too_many_inputs(const char* name, std::size_t got) {
  throw ArgumentError(
      str("record: expected at most 8 inputs, got ", got, " (", name, "); use record_many"));
}
}  // namespace detail

void Grads::push_back(Tensor t) {
  if (many_.empty() && size_ < inline_.size()) {
    inline_[size_++] = std::move(t);
    return;
  }
  if (many_.empty())
    for (std::size_t i = 0; i < size_; ++i) many_.push_back(std::move(inline_[i]));
  many_.push_back(std::move(t));
  ++size_;
}

autograd::Node::Node(const char* name, Device device, std::uint32_t outputs,
                     std::span<const Tensor* const> inputs)
    : name_(name), outputs_(outputs), device_(device) {
  if (const ThreadContext* const context = state.context) [[unlikely]]
    origin_ = context->origin();
  edge_count_ = static_cast<std::uint32_t>(inputs.size());
  if (edge_count_ > kInlineEdges) many_edges_ = std::make_unique<Edge[]>(edge_count_);
  const std::span<Edge> all = edges();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TensorImpl* const t = inputs[i]->id();
    if (!t) continue;
    detail::settle_history(*t);
    if (t->grad_fn) {
      all[i].node = t->grad_fn;
      all[i].output_nr = t->output_nr;
      depth_ = std::max(depth_, t->grad_fn->depth_);
    } else if (t->requires_grad) {
      all[i].leaf = inputs[i]->impl();
    }
    all[i].dtype = t->dtype;
    all[i].dims = static_cast<std::uint8_t>(t->shape.rank());
    all[i].numel = t->numel;
  }
  ++depth_;
}

autograd::Node::~Node() {
  if (hooked_) detail::forget_hooks(this);
}

void autograd::Node::destroy() const noexcept {
  // Destroying a node releases the nodes below it. They are queued here, so that a long chain does
  // not recurse.
  thread_local const Node* dead = nullptr;
  thread_local bool draining = false;
  next_dead_ = dead;
  dead = this;
  if (draining) return;
  draining = true;
  while (const Node* node = dead) {
    dead = node->next_dead_;
    delete node;
  }
  draining = false;
}

SavedTensor::SavedTensor(const Tensor& input)
    : tensor_(input.defined() && input.id()->base ? detail::without_base(input) : input),
      version_(input.defined() ? input.version() : 0) {
  if (!detail::keeps_saved()) [[unlikely]]
    pass_to_checkpoint();
}

SavedTensor SavedTensor::output(const Tensor& y, std::uint32_t output_nr) {
  SavedTensor s;
  s.tensor_ = y.detach();
  s.version_ = y.version();
  s.output_nr_ = output_nr;
  s.output_ = true;
  if (!detail::keeps_saved()) [[unlikely]]
    s.pass_to_checkpoint();
  return s;
}

void SavedTensor::pass_to_checkpoint() {
  if (!tensor_.defined()) return;
  detail::Passed passed = detail::pass_to_checkpoint(tensor_);
  from_ = std::move(passed.from);
  index_ = passed.index;
  if (!passed.keep) tensor_ = {};
}

void SavedTensor::take_back() const {
  const bool history = detail::wants_history();
  if (tensor_.defined() && (history_ || !history)) return;
  tensor_ = from_->take(index_, history);
  history_ = history;
}

Tensor SavedTensor::get() const {
  if (from_) [[unlikely]]
    take_back();
  if (!tensor_.defined()) return {};
  if (tensor_.version() != version_)
    throw AutogradError(str("backward: expected a saved tensor of shape ", tensor_.shape(),
                            " unchanged (version ", version_,
                            "), got it changed in place (version ", tensor_.version(), ")",
                            current_node ? str("; saved by ", current_node->name()) : ""));
  if (!output_ || !grad_enabled() || !current_node) return tensor_;
  const Tensor attached = tensor_.detach();
  detail::attach(attached, Ref<Node>(current_node), output_nr_);
  return attached;
}

}  // namespace braid
