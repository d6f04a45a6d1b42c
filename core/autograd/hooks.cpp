#include "hooks.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/hooks.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/ops/binary.hpp>

namespace braid {
namespace detail {

struct Hook {
  const void* owner;
  std::uint32_t output_nr;
  HookKind kind;
  std::function<Tensor(const Tensor&)> function;
  std::weak_ptr<Hook> of_node = {};  // of a tensor's own entry: the hook of its node
};

namespace {

using Hooks = std::vector<std::shared_ptr<Hook>>;

/// All hooks, by owner. Never destroyed, so that tensors that outlive main() can still remove
/// theirs. No hook is called or destroyed while the mutex is held.
struct Table {
  std::mutex mutex;
  std::unordered_map<const void*, Hooks> of;
  std::unordered_map<const void*, SinkOf> sinks;
};
Table& table() {
  static Table& made = *new Table;
  return made;
}

Hooks hooks_of(const void* owner, std::uint32_t output_nr, HookKind kind) {
  Hooks list;
  const std::lock_guard lock(table().mutex);
  const auto found = table().of.find(owner);
  if (found == table().of.end()) return list;
  for (const auto& hook : found->second)
    if (hook->output_nr == output_nr && hook->kind == kind) list.push_back(hook);
  return list;
}

std::shared_ptr<Hook> add(Hook made) {
  auto hook = std::make_shared<Hook>(std::move(made));
  const std::lock_guard lock(table().mutex);
  table().of[hook->owner].push_back(hook);
  return hook;
}
HookHandle add_hook(const void* owner, std::uint32_t output_nr, HookKind kind,
                    std::function<Tensor(const Tensor&)> function) {
  return HookHandle(add({owner, output_nr, kind, std::move(function)}));
}

}  // namespace

Tensor run_hooks(const void* owner, std::uint32_t output_nr, Tensor gradient) {
  for (const auto& hook : hooks_of(owner, output_nr, HookKind::gradient)) {
    Tensor other = hook->function(gradient);
    if (!other.defined()) continue;
    if (other.shape() != gradient.shape() || other.dtype() != gradient.dtype() ||
        other.device() != gradient.device())
      throw AutogradError(str("register_hook: expected the hook to return a gradient of shape ",
                              gradient.shape(), ", ", gradient.dtype(), " on ", gradient.device(),
                              ", or an undefined one, got ", other.shape(), ", ", other.dtype(),
                              " on ", other.device()));
    gradient = std::move(other);
  }
  for (const auto& hook : hooks_of(owner, output_nr, HookKind::retained))
    (void)hook->function(gradient);
  return gradient;
}

void run_accumulated_hooks(const Tensor& leaf) {
  for (const auto& hook : hooks_of(leaf.id(), 0, HookKind::accumulated)) (void)hook->function(leaf);
}

void move_retained(const TensorImpl& tensor, autograd::Node& node, std::uint32_t output_nr) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().of.find(&tensor);
  if (found == table().of.end()) return;
  for (const auto& own : found->second) {
    const std::shared_ptr<Hook> hook = own->of_node.lock();
    if (!hook || hook->owner == &node) continue;
    node.set_hooked();  // first: its end removes what the next lines insert
    table().of[&node].push_back(hook);
    if (const auto before = table().of.find(hook->owner); before != table().of.end())
      std::erase(before->second, hook);
    hook->owner = &node;
    hook->output_nr = output_nr;
    return;
  }
}

void forget_hooks(const void* owner) noexcept {
  Hooks gone;  // declared before the lock, so that the hooks are destroyed after it is released
  SinkOf sink;
  const std::lock_guard lock(table().mutex);
  if (const auto found = table().sinks.find(owner); found != table().sinks.end()) {
    std::swap(sink, found->second);
    table().sinks.erase(found);
  }
  const auto found = table().of.find(owner);
  if (found == table().of.end()) return;
  gone.swap(found->second);
  table().of.erase(found);
}

SinkOf sink_of(const TensorImpl* leaf) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().sinks.find(leaf);
  return found == table().sinks.end() ? SinkOf{} : found->second;
}

}  // namespace detail

void set_gradient_sink(const Tensor& t, const std::shared_ptr<GradientSink>& sink,
                       std::size_t number) {
  if (!t.is_leaf() || (sink && !t.requires_grad()))
    throw AutogradError(str("set_gradient_sink: expected a leaf that requires a gradient, got ",
                            t.is_leaf() ? "a tensor that does not" : "a tensor that an op made"));
  detail::SinkOf of{sink, sink.get(),
                    number};  // the old one is destroyed after the lock is released
  const std::lock_guard lock(detail::table().mutex);
  if (!sink) {
    detail::table().sinks.erase(t.id());
    return;
  }
  std::swap(detail::table().sinks[t.id()], of);
  t.id()->hooked = true;
  detail::StepCapture::hook_removed();  // a replay would not call the sink
}

std::shared_ptr<GradientSink> gradient_sink(const Tensor& t) {
  return t.id()->hooked ? detail::sink_of(t.id()).sink.lock() : nullptr;
}

void remove_gradient_sink(const Tensor& t, const GradientSink* sink) noexcept {
  const std::lock_guard lock(detail::table().mutex);
  const auto found = detail::table().sinks.find(t.id());
  if (found != detail::table().sinks.end() && found->second.address == sink)
    detail::table().sinks.erase(found);
}

void HookHandle::remove() const {
  // declared before the lock, so that the hook is destroyed after the lock is released
  const std::shared_ptr<detail::Hook> hook = hook_.lock();
  if (!hook) return;
  detail::StepCapture::hook_removed();
  const std::lock_guard lock(detail::table().mutex);
  const auto found = detail::table().of.find(hook->owner);
  if (found == detail::table().of.end()) return;
  std::erase(found->second, hook);
}

HookHandle Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  if (!hook) throw ArgumentError("register_hook: expected a function, got none");
  if (!requires_grad())
    throw AutogradError(
        str("register_hook: expected a tensor that requires a gradient, got one of shape ", shape(),
            " that does not"));
  if (autograd::Node* const node = impl_->grad_fn.get()) {
    HookHandle handle =
        detail::add_hook(node, impl_->output_nr, detail::HookKind::gradient, std::move(hook));
    node->set_hooked();
    return handle;
  }
  detail::StepCapture::hooks_changed("register_hook", impl_->storage.get());
  HookHandle handle = detail::add_hook(impl_.get(), 0, detail::HookKind::gradient, std::move(hook));
  impl_->hooked = true;
  return handle;
}

namespace {

/// The tensor that retain_grad was called for, as long as it exists.
struct Retaining {
  std::mutex mutex;
  TensorImpl* tensor;
};

/// Held by the tensor's own entry in the table, which ends with the tensor.
struct EndOfTensor {
  explicit EndOfTensor(std::shared_ptr<Retaining> r) noexcept : retaining(std::move(r)) {}
  EndOfTensor(const EndOfTensor&) = delete;
  EndOfTensor& operator=(const EndOfTensor&) = delete;
  ~EndOfTensor() {
    const std::lock_guard lock(retaining->mutex);
    retaining->tensor = nullptr;
  }
  std::shared_ptr<Retaining> retaining;
};

}  // namespace

bool Tensor::retains_grad() const {
  const TensorImpl& t = detail::defined(impl_);
  return t.hooked && !detail::hooks_of(&t, 0, detail::HookKind::retained).empty();
}

const Tensor& Tensor::retain_grad() const {
  if (!requires_grad())
    throw AutogradError(
        str("retain_grad: expected a tensor that requires a gradient, got one of shape ", shape(),
            " that does not"));
  autograd::Node* const node = is_leaf() ? nullptr : impl_->grad_fn.get();
  if (!node || retains_grad()) return *this;
  const auto retaining = std::make_shared<Retaining>();
  retaining->tensor = impl_.get();
  const auto hook = detail::add(
      {node, impl_->output_nr, detail::HookKind::retained, [retaining](const Tensor& gradient) {
         Tensor before;  // destroyed after the lock: its graph may hold the tensor, whose end locks
         const std::lock_guard lock(retaining->mutex);
         if (TensorImpl* const t = retaining->tensor) {
           if (auto* const capture = detail::StepCapture::current()) capture->reads_grad(*t);
           before = Tensor(t->grad);
           t->grad = (before.defined() ? before + gradient : gradient.clone()).impl();
         }
         return Tensor();
       }});
  node->set_hooked();
  const auto end = std::make_shared<EndOfTensor>(retaining);
  (void)detail::add({impl_.get(), 0, detail::HookKind::retained,
                     [end](const Tensor&) { return Tensor(); }, hook});
  impl_->hooked = true;
  return *this;
}

const autograd::Node* Tensor::grad_fn() const { return is_leaf() ? nullptr : impl_->grad_fn.get(); }

HookHandle Tensor::register_post_accumulate_grad_hook(
    std::function<void(const Tensor&)> hook) const {
  if (!hook)
    throw ArgumentError("register_post_accumulate_grad_hook: expected a function, got none");
  if (!requires_grad() || !is_leaf())
    throw AutogradError(
        str("register_post_accumulate_grad_hook: expected a leaf that requires a gradient, got ",
            is_leaf() ? "a tensor that does not" : "a tensor that an op made"));
  detail::StepCapture::hooks_changed("register_post_accumulate_grad_hook", impl_->storage.get());
  HookHandle handle = detail::add_hook(impl_.get(), 0, detail::HookKind::accumulated,
                                       [f = std::move(hook)](const Tensor& leaf) {
                                         f(leaf);
                                         return Tensor();
                                       });
  impl_->hooked = true;
  return handle;
}

}  // namespace braid
