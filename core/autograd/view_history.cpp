#include "view_history.hpp"

#include <mutex>

#include "engine.hpp"
#include "hooks.hpp"
#include "ops/common.hpp"

namespace braid {
namespace {

/// A view in the memory of its base. Offsets count from the base's first element.
struct Placed {
  Shape whole, whole_strides;  // of the base
  Shape shape, strides;        // of the view
  std::int64_t offset = 0;
  bool dense = false;     // the base is contiguous
  std::int64_t span = 0;  // number of elements from the base's first to its last one

  Placed(const TensorImpl& base, const TensorImpl& view)
      : whole(base.shape),
        whole_strides(base.strides),
        shape(view.shape),
        strides(view.strides),
        offset(view.numel == 0 ? 0 : view.offset - base.offset),
        dense(base.contiguous),
        span(base.numel == 0 ? 0 : 1) {
    for (int d = 0; d < whole.rank() && span > 0; ++d) span += (whole[d] - 1) * whole_strides[d];
  }
  /// The shape of the view without the repetitions that expand makes.
  [[nodiscard]] Shape once() const {
    Shape s = shape;
    for (int d = 0; d < s.rank(); ++d)
      if (strides[d] == 0 && s[d] > 1) s[d] = 1;
    return s;
  }
};

/// The base's gradient g as its memory: contiguous, with 0 in the gaps. Recorded.
Tensor as_memory(const Placed& p, const Tensor& g) {
  return p.dense ? g : ops::embed("as_strided", g, {p.span}, p.whole_strides, 0);
}
/// The reverse.
Tensor from_memory(const Placed& p, const Tensor& memory) {
  return p.dense ? memory : ops::dense_view("as_strided", memory, p.whole, p.whole_strides, 0);
}

/// Returns the view's part of the base's gradient g. Recorded; its gradient is put_part.
Tensor part_of(const Placed& p, const Tensor& g) {
  return ops::dense_view("as_strided", as_memory(p, g), p.once(), p.strides, p.offset)
      .expand(p.shape);
}
/// Returns a gradient of the base that is dy in the view, and 0 elsewhere. Recorded.
Tensor put_part(const Placed& p, const Tensor& dy) {
  return from_memory(p, ops::embed("as_strided", ops::sum_to(dy, p.once()),
                                   p.dense ? p.whole : Shape{p.span}, p.strides, p.offset));
}
/// Writes 0 into the view's part of the contiguous memory. Not recorded.
void clear_part(const Placed& p, const Tensor& memory) {
  ops::fill_values(make_tensor_on(memory.storage(), p.shape, p.strides,
                                  memory.storage_offset() + p.offset, memory.dtype()),
                   0);
}
/// Returns g with 0 in the view. Recorded; its gradient is itself.
Tensor without_part(const Placed& p, const Tensor& g) {
  Tensor y;
  {
    const NoGrad guard;
    const Tensor memory = p.dense ? g.detach().clone() : as_memory(p, g.detach());
    clear_part(p, memory);
    y = from_memory(p, memory).detach();
  }
  if (!needs_grad({g})) return y;
  return record("copy_slices", {g}, y,
                [p](const Tensor& dy) -> Grads { return {without_part(p, dy)}; });
}

/// The gradients of copy_slices(base, values): those of the base and of the values.
Grads split_gradient(const Placed& p, const Tensor& dy, bool of_base, bool of_values) {
  Tensor values;
  if (of_values) values = part_of(p, dy);
  if (!of_base) return {Tensor(), values};
  // A loop that writes the rows of a tensor one by one takes time in proportion to the tensor, if
  // nothing else holds dy. The engine holds it once.
  if (!grad_enabled() && p.dense && dy.is_contiguous() && dy.id()->references() == 1 &&
      dy.storage()->references() == (values.defined() ? 2U : 1U)) {
    if (values.defined()) values = values.clone();
    clear_part(p, dy);
    return {dy, values};
  }
  return {without_part(p, dy), values};
}

void graph_changed(TensorImpl& t) noexcept {
  t.history.store(t.history.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

}  // namespace

namespace detail {

void be_view_of(TensorImpl& view, TensorImpl& parent) noexcept {
  const ViewKind kind = parent.view_kind == ViewKind::none ? ViewKind::view : parent.view_kind;
  view.view_kind = grad_enabled() ? kind : ViewKind::no_grad;
  if (!is_floating(view.dtype)) return;
  if (parent.view_kind == ViewKind::many && !parent.base) return;
  TensorImpl& base = follows_base(parent) ? *parent.base : parent;
  // what backward makes of gradients holds nothing, so that the engine can add to them in place
  if (!grad_enabled() && !base.grad_fn && !base.requires_grad && running_node()) return;
  view.base = Ref<TensorImpl>(&base);
  view.history.store(base.history.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void be_no_view(const Tensor& y) noexcept {
  TensorImpl& t = *y.id();
  t.base = {};
  t.view_kind = ViewKind::none;
}

void be_one_of_many(const Tensor& y) noexcept {
  if (y.id()->view_kind == ViewKind::view) y.id()->view_kind = ViewKind::many;
}

void follow_base(TensorImpl& view) {
  // A view that no longer follows its base counts the changes of its own graph, for its views.
  if (!follows_base(view)) return;
  // Several threads may read one view. In a program without races none of them changes the base.
  const Tensor whole(view.base);
  const bool recorded = whole.requires_grad();  // the base may follow another tensor
  const TensorImpl& base = *view.base;
  const std::uint64_t now = base.history.load(std::memory_order_acquire);
  Ref<autograd::Node> node;  // made before the mutex is locked: that may call a program's function
  if (recorded && !view.requires_grad) {
    const Tensor* const input = &whole;
    const Placed placed(base, view);
    if (view.numel > 1 && !ops::has_own_elements(placed.once(), view.strides))
      throw AutogradError(
          str("as_strided: expected views whose elements each have their own memory, or that "
              "expand made, of a tensor that was changed in place, got shape ",
              view.shape, ", strides ", view.strides));
    auto f = [p = placed](const Tensor& dy) -> Grads { return {put_part(p, dy)}; };
    node = Ref<autograd::Node>(
        new NodeOf<decltype(f)>("as_strided", view.device, 1, {&input, 1}, std::move(f)));
  }
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (view.history.load(std::memory_order_relaxed) == now) return;  // another thread was faster
  if (!view.requires_grad) {
    if (view.hooked && node) move_retained(view, *node, 0);
    std::swap(view.grad_fn, node);  // the old one is destroyed after the mutex is released
    view.output_nr = 0;
  }
  view.history.store(now, std::memory_order_release);
}

void change_base(const Tensor& view, const Ref<autograd::Node>& node, std::uint32_t output_nr) {
  const Tensor base(view.id()->base), values = view.detach();
  values.id()->grad_fn = node;
  values.id()->output_nr = output_nr;
  const Placed p(*base.id(), *view.id());
  // a view of all elements leaves nothing of the old values
  const bool all = view.numel() == base.numel();
  record("copy_slices", {all ? Tensor() : base, values}, base,
         [p](const Tensor& dy, Needs needs) -> Grads {
           return split_gradient(p, dy, needs[0], needs[1]);
         });
}

Tensor without_base(const Tensor& view) {
  TensorImpl& t = *view.id();
  if (t.requires_grad) return view;  // a leaf
  settle_history(t);
  Tensor alias = view.detach();
  alias.id()->grad_fn = t.grad_fn;
  alias.id()->output_nr = t.output_nr;
  return alias;
}

void attach(const Tensor& y, Ref<autograd::Node> node, std::uint32_t output_nr) {
  TensorImpl& t = *y.id();
  // a view gets its graph once when it is made; later ones record changes
  if (t.base && (t.settled || t.grad_fn) && follows_base(t)) {
    change_base(y, node, output_nr);
    return;
  }
  if (t.hooked) [[unlikely]]
    move_retained(t, *node, output_nr);
  t.grad_fn = std::move(node);
  t.output_nr = output_nr;
  t.settled = true;
  // the result of an op that made it under NoGrad: its graph is its own
  if (t.view_kind == ViewKind::no_grad) t.base = {};
  if (!follows_base(t)) graph_changed(t);
}

}  // namespace detail
}  // namespace braid
