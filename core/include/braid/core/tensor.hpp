#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>
#include <braid/core/hooks.hpp>
#include <braid/core/ref.hpp>
#include <braid/core/scalar.hpp>
#include <braid/core/shape.hpp>
#include <braid/core/storage.hpp>

namespace braid {

class Node;
struct TensorImpl;

/// How a factory makes its tensor. Defaults: cpu:0, float32 (or what the factory says), no
/// gradient.
struct TensorOptions {
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
  bool requires_grad = false;
  /// random factories: numbers of this seed alone, the global stream is not advanced
  std::optional<std::uint64_t> seed = {};
};

/// A small handle to shape, strides, dtype, device and shared storage. Copying it is cheap and
/// shares everything; views share the storage. A handle's const is shallow, as a pointer's. Methods
/// on an undefined tensor throw Error.
class Tensor {
 public:
  Tensor() noexcept = default;
  explicit Tensor(Ref<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  Tensor(const Tensor&) noexcept = default;
  Tensor(Tensor&&) noexcept = default;
  /// Makes this handle another one of t's tensor. Only a named handle can be assigned to:
  /// `x[0] = y` would change nothing and does not compile; write `x[0].copy_(y)`.
  Tensor& operator=(const Tensor& t) & noexcept = default;
  Tensor& operator=(Tensor&& t) & noexcept = default;
  ~Tensor() = default;

  // ---- words
  [[nodiscard]] bool defined() const noexcept { return static_cast<bool>(impl_); }
  [[nodiscard]] const Shape& shape() const;
  [[nodiscard]] const Shape& strides() const;  ///< in elements
  [[nodiscard]] int dim() const;               ///< number of dimensions
  [[nodiscard]] std::int64_t size(std::int64_t dim) const;
  [[nodiscard]] std::int64_t numel() const;
  [[nodiscard]] DType dtype() const;
  [[nodiscard]] Device device() const;
  [[nodiscard]] bool is_contiguous() const;
  [[nodiscard]] std::int64_t storage_offset() const;  ///< in elements
  [[nodiscard]] const Ref<Storage>& storage() const;
  [[nodiscard]] std::uint64_t version() const;  ///< grows with every in-place change of the storage

  // ---- gradients
  [[nodiscard]] bool requires_grad() const;
  /// Sets the flag of a leaf. Throws AutogradError for a tensor that an op made, DTypeError if it
  /// is not floating point.
  const Tensor& requires_grad_(bool on = true) const;
  [[nodiscard]] bool is_leaf() const;
  /// The accumulated gradient of a leaf; undefined if there is none.
  [[nodiscard]] Tensor grad() const;
  /// Replaces the gradient; an undefined tensor removes it. Throws ShapeError, DTypeError or
  /// DeviceError if it does not fit.
  void set_grad(const Tensor& grad) const;
  /// Gradients of this tensor with respect to all leaves that require one, added to their grad().
  /// Either all are added or, on an exception, none. `gradient` is needed unless this has one
  /// element. Throws AutogradError if nothing requires a gradient or the graph was freed.
  void backward(const Tensor& gradient = {}, bool retain_graph = false,
                bool create_graph = false) const;
  /// The same numbers without history; shares storage.
  [[nodiscard]] Tensor detach() const;
  /// hook(gradient) is called in every backward, and grad(), that reaches this tensor, when the
  /// whole gradient with respect to it is known, before anything is made of it. What it returns
  /// takes the gradient's place, unless it is undefined (or the hook returns nothing); it must not
  /// change the gradient in place. Hooks of one tensor run in the order of registration, on the
  /// thread of its device, with no lock held; what they throw leaves backward, which then has added
  /// nothing. A hook on a result belongs to the op that made it, in-place changes later do not move
  /// it. It lives as long as that op's history, or the leaf: it must not hold the tensor itself.
  /// Throws AutogradError for a tensor that requires no gradient.
  HookHandle register_hook(std::function<Tensor(const Tensor& gradient)> hook) const;
  template <class F>
    requires std::is_void_v<std::invoke_result_t<F&, const Tensor&>>
  HookHandle register_hook(F hook) const;
  /// hook(leaf) is called after a backward has added to its grad(), when all leaves have theirs.
  /// What it throws leaves backward, with all gradients added. Throws AutogradError for anything
  /// but a leaf that requires a gradient.
  HookHandle register_post_accumulate_grad_hook(std::function<void(const Tensor& leaf)> hook) const;

  // ---- copies; each is differentiable
  /// A tensor with that device and dtype: this handle if nothing changes (unless `copy`), else a
  /// new one. Never changes this one.
  [[nodiscard]] Tensor to(Device device, std::optional<DType> dtype = {}, bool copy = false) const;
  [[nodiscard]] Tensor to(DType dtype, bool copy = false) const;
  [[nodiscard]] Tensor clone() const;  ///< dense copy
  [[nodiscard]] Tensor contiguous() const;

  // ---- in place. Bump the version; refuse leaves that require grad (outside no_grad) and views
  // under autograd with AutogradError, and tensors whose elements share memory (expanded ones) with
  // LayoutError. A call on a temporary gives the tensor itself, to be kept: `zeros({3}).fill_(1)`.
  // But x[index] and a reshape that had to copy look as if they were parts of x: what is written
  // into such a copy while nothing holds it would be lost, and is a LayoutError
  // (docs/decisions/0014-in-place-on-a-temporary.md).
  /// Broadcasts; converts dtype; copies between devices. An integer tensor takes numbers, but no
  /// history.
  const Tensor& copy_(const Tensor& source) const&;
  Tensor copy_(const Tensor& source) const&& { return kept("copy_").copy_(source); }
  /// throws DTypeError for a value that the dtype cannot hold, as full does
  const Tensor& fill_(const Scalar& value) const&;
  Tensor fill_(const Scalar& value) const&& { return kept("fill_").fill_(value); }
  const Tensor& zero_() const&;
  Tensor zero_() const&& { return kept("zero_").zero_(); }
  /// this += alpha * other
  const Tensor& add_(const Tensor& other, const Scalar& alpha = 1) const&;
  Tensor add_(const Tensor& other, const Scalar& alpha = 1) const&& {
    return kept("add_").add_(other, alpha);
  }
  const Tensor& sub_(const Tensor& other, const Scalar& alpha = 1) const&;
  Tensor sub_(const Tensor& other, const Scalar& alpha = 1) const&& {
    return kept("sub_").sub_(other, alpha);
  }
  /// The old numbers are copied where a gradient needs them, so that other may be this tensor, or
  /// share its memory (PyTorch refuses that in backward).
  const Tensor& mul_(const Tensor& other) const&;
  Tensor mul_(const Tensor& other) const&& { return kept("mul_").mul_(other); }
  /// integers take whole numbers, bool 0 and 1; others are a DTypeError
  const Tensor& add_(const Scalar& value) const&;
  Tensor add_(const Scalar& value) const&& { return kept("add_").add_(value); }
  const Tensor& mul_(const Scalar& value) const&;
  Tensor mul_(const Scalar& value) const&& { return kept("mul_").mul_(value); }
  const Tensor& sub_(const Scalar& value) const&;
  Tensor sub_(const Scalar& value) const&& { return kept("sub_").sub_(value); }
  const Tensor& div_(const Tensor& other) const&;  ///< DTypeError unless this is floating point
  Tensor div_(const Tensor& other) const&& { return kept("div_").div_(other); }
  const Tensor& div_(const Scalar& value) const&;
  Tensor div_(const Scalar& value) const&& { return kept("div_").div_(value); }
  /// As clamp, masked_fill and relu (ops/elementwise.hpp), of this tensor's dtype; an integer
  /// tensor takes whole bounds.
  const Tensor& clamp_(const std::optional<Scalar>& min,
                       const std::optional<Scalar>& max = {}) const&;
  Tensor clamp_(const std::optional<Scalar>& min, const std::optional<Scalar>& max = {}) const&& {
    return kept("clamp_").clamp_(min, max);
  }
  /// the mask broadcasts to this shape
  const Tensor& masked_fill_(const Tensor& mask, const Scalar& value) const&;
  Tensor masked_fill_(const Tensor& mask, const Scalar& value) const&& {
    return kept("masked_fill_").masked_fill_(mask, value);
  }
  const Tensor& relu_() const&;
  Tensor relu_() const&& { return kept("relu_").relu_(); }

  // ---- views: share storage, differentiable. Negative dims count from the end; wrong ones throw
  // IndexError or ShapeError.
  [[nodiscard]] Tensor operator[](std::int64_t index) const;  ///< select(0, index)
  /// rows of dim 0 by an int64 tensor (a copy): shape index.shape + shape[1:]
  [[nodiscard]] Tensor operator[](const Tensor& index) const;
  [[nodiscard]] Tensor select(std::int64_t dim, std::int64_t index) const;
  /// Elements start, start + step, … < end of dim. start and end are clamped as in Python; step >=
  /// 1.
  [[nodiscard]] Tensor slice(std::int64_t dim, std::int64_t start, std::int64_t end,
                             std::int64_t step = 1) const;
  /// `length` elements of dim from `start` on; a negative start counts from the end. Nothing is
  /// clamped.
  [[nodiscard]] Tensor narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const;
  [[nodiscard]] Tensor transpose(std::int64_t a, std::int64_t b) const;
  [[nodiscard]] Tensor t() const;  ///< transpose of a matrix; rank <= 2
  [[nodiscard]] Tensor permute(const Shape& dims) const;
  /// One size may be -1. A view where the strides allow it, else a copy.
  [[nodiscard]] Tensor reshape(const Shape& shape) const;
  /// As reshape, but throws LayoutError where a copy would be needed.
  [[nodiscard]] Tensor view(const Shape& shape) const;
  [[nodiscard]] Tensor flatten(std::int64_t start = 0, std::int64_t end = -1) const;
  [[nodiscard]] Tensor squeeze(std::int64_t dim) const;
  [[nodiscard]] Tensor squeeze() const;
  [[nodiscard]] Tensor unsqueeze(std::int64_t dim) const;
  /// -1 keeps a size; stride 0 in the new dims
  [[nodiscard]] Tensor expand(const Shape& shape) const;

  // ---- reductions (docs in ops/reduce.hpp)
  [[nodiscard]] Tensor sum() const;
  [[nodiscard]] Tensor sum(const Shape& dims, bool keepdim = false) const;
  [[nodiscard]] Tensor mean() const;
  [[nodiscard]] Tensor mean(const Shape& dims, bool keepdim = false) const;
  [[nodiscard]] Tensor max() const;
  [[nodiscard]] Tensor argmax(std::int64_t dim, bool keepdim = false) const;

  // ---- the way out
  /// The one element. Throws ShapeError unless numel() == 1. Converts from any dtype (to bool:
  /// whether it differs from 0). Needs no memory of the device.
  template <class T> [[nodiscard]] T item() const {
    if constexpr (std::is_same_v<T, bool>) return item_double() != 0;
    else if constexpr (std::is_integral_v<T>) return static_cast<T>(item_int64());
    else if constexpr (std::is_floating_point_v<T>) return static_cast<T>(item_double());
    else return static_cast<T>(static_cast<float>(item_double()));
  }
  /// All elements in row-major order, on the host, converted to T.
  template <Element T> [[nodiscard]] std::vector<T> to_vector() const;
  /// First element, for dense or strided host access; `data<const float>()` to read only, which
  /// caches of copies like better. Throws DTypeError unless T is the dtype, DeviceError unless the
  /// memory is the host's.
  template <class T> [[nodiscard]] T* data() const {
    return static_cast<T*>(data_as(dtype_of<std::remove_const_t<T>>, !std::is_const_v<T>));
  }

  /// Identity of the body; two handles of one tensor share it.
  [[nodiscard]] TensorImpl* id() const noexcept { return impl_.get(); }
  [[nodiscard]] const Ref<TensorImpl>& impl() const noexcept { return impl_; }
  /// As PyTorch prints (4 digits, 80 columns, summarised above 1000 elements).
  friend std::ostream& operator<<(std::ostream& out, const Tensor& t);

 private:
  /// This, unless it is a copy that looks like a part of another tensor and that nothing else
  /// holds. Throws LayoutError.
  [[nodiscard]] const Tensor& kept(const char* op) const;
  [[nodiscard]] double item_double() const;
  [[nodiscard]] std::int64_t item_int64() const;
  [[nodiscard]] void* data_as(DType dtype, bool written) const;
  Ref<TensorImpl> impl_;
};

/// The body of a tensor. Fields are written by the makers of tensors (ops, views) before the handle
/// is handed out, and by in-place ops.
struct TensorImpl final : RefCounted {
  Shape shape;
  Shape strides;
  std::int64_t offset = 0;  // elements
  std::int64_t numel = 0;
  Ref<Storage> storage;
  Ref<Node> grad_fn;
  Ref<TensorImpl> grad;
  std::uint32_t output_nr = 0;  // which output of grad_fn
  DType dtype = DType::float32;
  bool hooked = false;  // see autograd/hooks.hpp
  Device device;
  bool requires_grad = false;  // of a leaf; with a grad_fn it is implied
  bool is_view = false;
  // in-place changes under autograd would leave their history behind
  std::atomic<bool> has_views{false};
  bool contiguous = true;
  bool tied = false;             // see nn::tie
  bool is_replica = false;       // made by replicate
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

/// Dense, uninitialised, without history: what ops use for their results. Throws ShapeError
/// (negative, overflow) and OutOfMemoryError.
[[nodiscard]] Tensor make_tensor(const Shape& shape, DType dtype, Device device);
/// A view on `base`'s storage, checked: every element must lie inside the storage, overflow
/// included, else ShapeError. No history.
[[nodiscard]] Tensor make_view(const Tensor& base, const Shape& shape, const Shape& strides,
                               std::int64_t offset);
/// A tensor on a storage, checked in the same way.
[[nodiscard]] Tensor make_tensor_on(const Ref<Storage>& storage, const Shape& shape,
                                    const Shape& strides, std::int64_t offset, DType dtype);

namespace detail {
[[noreturn]] void undefined_tensor();
inline TensorImpl& defined(const Ref<TensorImpl>& impl) {
  if (!impl) undefined_tensor();
  return *impl;
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
  return detail::defined(impl_).requires_grad || impl_->grad_fn;
}
inline bool Tensor::is_leaf() const { return !detail::defined(impl_).grad_fn; }

}  // namespace braid
