#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include <braid/core/tensor.hpp>

// What the handles of a tensor share, and how ops make tensors and views. For code that writes ops;
// tensor.hpp includes it.
namespace braid {

/// Which tensor with the memory of another one may be changed in place where gradients are recorded
/// (docs/decisions/0025-in-place-through-views.md).
enum class ViewKind : std::uint8_t {
  none,     ///< not made as a view
  view,     ///< changes are recorded: the base gets them
  no_grad,  ///< made under NoGrad: recorded changes are refused
  many,     ///< one of several results of an op (split): likewise
};

/// The object that the handles of a tensor share. The functions that make tensors (ops, views)
/// write its fields before they return the handle; later only in-place ops do.
struct TensorImpl final : RefCounted {
  Shape shape;
  Shape strides;
  std::int64_t offset = 0;  // elements
  std::int64_t numel = 0;
  Ref<Storage> storage;
  Ref<autograd::Node> grad_fn;
  Ref<TensorImpl> grad;
  // of a floating-point view made while gradients are recorded: the tensor, itself no view, whose
  // changes it follows; see autograd/view_history.hpp
  Ref<TensorImpl> base;
  // Number of changes of the graph of this tensor. In a view: the base's number at the time for
  // which the view's grad_fn is right.
  std::atomic<std::uint64_t> history{0};
  std::uint32_t output_nr = 0;  // which output of grad_fn
  DType dtype = DType::float32;
  bool hooked = false;  // see autograd/hooks.hpp
  Device device;
  bool requires_grad = false;  // for leaves; with a grad_fn it is implied
  ViewKind view_kind = ViewKind::none;
  bool settled = false;  // of a view: its graph at its creation, if any, is complete
  bool contiguous = true;
  std::uint8_t marks = 0;        // bits of the modules above core, which core does not read
  bool looks_like_part = false;  // a copy made by x[index] or reshape, see Tensor::kept

  TensorImpl() noexcept;
  ~TensorImpl();  // out of line: Node is incomplete here
  void destroy() const noexcept { delete this; }
  /// Address of the first element.
  [[nodiscard]] void* data() const noexcept {
    return static_cast<char*>(storage->data()) + offset * static_cast<std::int64_t>(size_of(dtype));
  }
  static void* operator new(std::size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* p, std::size_t bytes) noexcept { pool_release(p, bytes); }
};

/// Makes a contiguous, uninitialised tensor outside of the graph, as ops do for their results.
///
/// Throws    ShapeError (negative size, overflow) and OutOfMemoryError
[[nodiscard]] Tensor make_tensor(const Shape& shape, DType dtype, Device device);
/// Makes a view of `base`'s storage outside of the graph. After a recorded in-place change of base,
/// of another view of it, or of the view, the view is part of the graph.
///
/// Throws    ShapeError unless strides and offset are >= 0 and every element lies inside the
///           storage; overflow is checked
[[nodiscard]] Tensor make_view(const Tensor& base, const Shape& shape, const Shape& strides,
                               std::int64_t offset);
/// Makes a tensor on a storage, with the same checks.
[[nodiscard]] Tensor make_tensor_on(const Ref<Storage>& storage, const Shape& shape,
                                    const Shape& strides, std::int64_t offset, DType dtype);

namespace detail {
[[noreturn]] void undefined_tensor();
inline TensorImpl& defined(const Ref<TensorImpl>& impl) {
  if (!impl) undefined_tensor();
  return *impl;
}
/// Makes a view's grad_fn again, from its base's, after an in-place change of the base.
void follow_base(TensorImpl& view);
/// The tensor's grad_fn and output_nr are right after this call.
inline void settle_history(TensorImpl& t) {
  if (t.base && t.history.load(std::memory_order_acquire) !=
                    t.base->history.load(std::memory_order_relaxed)) [[unlikely]]
    follow_base(t);
}
}  // namespace detail

template <class F>
  requires std::is_void_v<std::invoke_result_t<F&, const Tensor&>>
HookHandle Tensor::register_hook(F hook) const {
  return register_hook(
      std::function<Tensor(const Tensor&)>([f = std::move(hook)](const Tensor& gradient) mutable {
        f(gradient);
        return Tensor();
      }));
}

inline const Shape& Tensor::shape() const { return detail::defined(impl_).shape; }
inline const Shape& Tensor::strides() const { return detail::defined(impl_).strides; }
inline int Tensor::dim() const { return detail::defined(impl_).shape.rank(); }
inline std::int64_t Tensor::numel() const { return detail::defined(impl_).numel; }
inline DType Tensor::dtype() const { return detail::defined(impl_).dtype; }
inline Device Tensor::device() const { return detail::defined(impl_).device; }
inline bool Tensor::is_contiguous() const { return detail::defined(impl_).contiguous; }
inline std::int64_t Tensor::storage_offset() const { return detail::defined(impl_).offset; }
inline const Ref<Storage>& Tensor::storage() const { return detail::defined(impl_).storage; }
inline std::uint64_t Tensor::version() const { return detail::defined(impl_).storage->version(); }
inline bool Tensor::requires_grad() const {
  detail::settle_history(detail::defined(impl_));
  return impl_->requires_grad || impl_->grad_fn;
}
inline bool Tensor::is_leaf() const {
  detail::settle_history(detail::defined(impl_));
  return !impl_->grad_fn;
}

}  // namespace braid
