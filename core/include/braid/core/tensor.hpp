#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>
#include <braid/core/hooks.hpp>
#include <braid/core/int_list.hpp>
#include <braid/core/options.hpp>
#include <braid/core/ref.hpp>
#include <braid/core/scalar.hpp>
#include <braid/core/shape.hpp>
#include <braid/core/storage.hpp>

namespace braid {

namespace autograd { class Node; }
namespace detail { class MutableGrad; }
namespace indexing { class TensorIndex; }
class RowIterator;
struct TensorImpl;
struct ValuesIndices;
template <class T, std::size_t N> class TensorAccessor;

/// A handle to a shape, strides, dtype, device and shared storage. A copy of it refers to the same
/// tensor. Views share the storage. `const` is shallow, as for a pointer: a const Tensor can still
/// be changed in place. Methods that read a tensor throw ArgumentError if the handle is undefined.
///
///     const Tensor w = randn({2, 5}, {.requires_grad = true}), t = rand({30, 5});
///     const Tensor error = mse_loss(linear(t, w), zeros({30, 2}));
///     error.backward();
///     print(error.item<double>(), w.grad().shape());  // … [2, 5]
class Tensor {
 public:
  Tensor() noexcept = default;
  explicit Tensor(Ref<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  Tensor(const Tensor&) noexcept = default;
  Tensor(Tensor&&) noexcept = default;
  /// Makes this handle refer to t's tensor.
  Tensor& operator=(const Tensor& t) & noexcept = default;
  Tensor& operator=(Tensor&& t) & noexcept = default;
  ~Tensor() = default;

  // ---- properties
  /// False for a handle that refers to no tensor.
  [[nodiscard]] bool defined() const noexcept { return static_cast<bool>(impl_); }
  [[nodiscard]] const Shape& shape() const;
  [[nodiscard]] const Shape& strides() const;  ///< in elements
  [[nodiscard]] int dim() const;               ///< number of dimensions
  /// Size of a dim; a negative dim counts from the end. Throws IndexError for an invalid dim.
  [[nodiscard]] std::int64_t size(std::int64_t dim) const;
  [[nodiscard]] std::int64_t numel() const;
  [[nodiscard]] DType dtype() const;
  [[nodiscard]] Device device() const;
  /// True if the elements are in row-major order without gaps.
  [[nodiscard]] bool is_contiguous() const;
  [[nodiscard]] std::int64_t storage_offset() const;  ///< in elements
  [[nodiscard]] const Ref<Storage>& storage() const;
  [[nodiscard]] std::uint64_t version() const;  ///< increases with every in-place change
  // the same in LibTorch's words
  [[nodiscard]] const Shape& sizes() const;
  [[nodiscard]] const Shape& size() const;
  [[nodiscard]] std::int64_t stride(std::int64_t dim) const;
  [[nodiscard]] int ndim() const;
  [[nodiscard]] int ndimension() const;
  [[nodiscard]] DType scalar_type() const;
  [[nodiscard]] TensorOptions options() const;      ///< dtype and device
  [[nodiscard]] std::int64_t element_size() const;  ///< in bytes
  [[nodiscard]] std::int64_t itemsize() const;
  [[nodiscard]] std::int64_t nbytes() const;  ///< of all elements
  [[nodiscard]] bool is_cpu() const;
  [[nodiscard]] bool is_cuda() const;
  [[nodiscard]] bool is_pinned() const;  ///< its memory is page-locked; see pin_memory
  [[nodiscard]] std::uint64_t _version() const;
  [[nodiscard]] int get_device() const;  ///< the device's index, or -1 on a CPU
  [[nodiscard]] bool is_floating_point() const;
  [[nodiscard]] bool is_complex() const;  ///< false
  [[nodiscard]] bool is_signed() const;   ///< false for uint8 and bool

  // ---- gradients
  [[nodiscard]] bool requires_grad() const, retains_grad() const;
  /// Sets whether a leaf requires a gradient. Throws DTypeError if `on` is true and the dtype is
  /// not floating point. For the result of a recorded op, true has no effect and false throws
  /// AutogradError.
  const Tensor& requires_grad_(bool on = true) const;
  /// True unless a recorded op made this tensor.
  [[nodiscard]] bool is_leaf() const;
  /// The recorded op that made this tensor: `y.grad_fn()->name()`. Null for a leaf.
  [[nodiscard]] const autograd::Node* grad_fn() const;
  [[nodiscard]] std::uint32_t output_nr() const;  ///< which result of that op; 0 for a leaf
  /// The accumulated gradient of a leaf, or with retain_grad; undefined if there is none.
  [[nodiscard]] Tensor grad() const;
  /// Later backwards add to this tensor's grad() too. Throws AutogradError without requires_grad().
  const Tensor& retain_grad() const;
  /// grad(), to be changed in place. `x.mutable_grad() = g` is `x.set_grad(g)`.
  [[nodiscard]] detail::MutableGrad mutable_grad() const;
  /// Replaces the gradient; an undefined tensor removes it. Throws ShapeError, DTypeError or
  /// DeviceError if it differs from this tensor in shape, dtype or device.
  void set_grad(const Tensor& grad) const;
  /// Computes the gradients of this tensor with respect to all leaves that require one, and adds
  /// them to their grad(). On an exception none is added. `gradient` is the gradient with respect
  /// to this tensor; it may be omitted if this tensor has one element. retain_graph keeps the graph
  /// for another backward. create_graph keeps it too, and records this backward, so that its
  /// gradients can be differentiated. Throws AutogradError if this tensor does not require a
  /// gradient, if `gradient` is missing, or if the graph was freed or is in use by another
  /// backward; ShapeError, DTypeError or DeviceError if `gradient` differs from this tensor.
  void backward(const Tensor& gradient = {}, bool retain_graph = false,
                bool create_graph = false) const;
  [[nodiscard]] Tensor detach() const;  ///< the same storage, outside of the graph
  /// Removes this tensor from its graph. Throws AutogradError for a view.
  const Tensor& detach_() const;
  const Tensor& set_requires_grad(bool on) const;  ///< requires_grad_
  /// Registers hook(gradient). Every backward() and grad() that reaches this tensor calls it when
  /// the gradient with respect to this tensor is complete, before it is used. If the hook returns a
  /// defined tensor, that replaces the gradient; it must have the gradient's shape, dtype and
  /// device (else AutogradError). With an undefined tensor or nothing the gradient stays. The hook
  /// must not change it in place. Hooks run in the order of registration, on the thread of the
  /// tensor's device, with no lock held. If one throws, so does backward(), and adds no gradient.
  /// A hook on the result of an op belongs to that op and exists as long as its node; later
  /// in-place changes do not move it. It must not hold the tensor itself: that would be a reference
  /// cycle. Throws AutogradError for a tensor that requires no gradient.
  ///
  ///     const auto hook = w.register_hook([](const Tensor& gradient) { return gradient * 0.1; });
  ///     hook.remove();
  HookHandle register_hook(std::function<Tensor(const Tensor& gradient)> hook) const;
  template <class F>
    requires std::is_void_v<std::invoke_result_t<F&, const Tensor&>>
  HookHandle register_hook(F hook) const;
  /// Registers hook(leaf), called after a backward has added to the grad() of all leaves. If it
  /// throws, so does backward(). Throws AutogradError unless this is a leaf that needs a gradient.
  HookHandle register_post_accumulate_grad_hook(std::function<void(const Tensor& leaf)> hook) const;

  // ---- factories with this tensor's dtype and device, unless the options set them
  [[nodiscard]] Tensor new_empty(const Shape& shape, const TensorOptions& options = {}) const;
  [[nodiscard]] Tensor new_zeros(const Shape& shape, const TensorOptions& options = {}) const;
  [[nodiscard]] Tensor new_ones(const Shape& shape, const TensorOptions& options = {}) const;
  [[nodiscard]] Tensor new_full(const Shape& shape, const Scalar& value,
                                const TensorOptions& options = {}) const;

  // ---- copies; all are differentiable
  /// Converts to a device and a dtype. Returns this handle if nothing changes and `copy` is false,
  /// else a new tensor.
  [[nodiscard]] Tensor to(Device device, std::optional<DType> dtype = {}, bool copy = false) const;
  [[nodiscard]] Tensor to(DType dtype, bool copy = false) const;
  [[nodiscard]] Tensor to(DeviceType device, std::optional<DType> dtype = {},
                          bool copy = false) const;
  // LibTorch's form. Copies to a GPU are asynchronous in any case: the host memory has been read
  // when the call returns, and the copy is queued. With non_blocking a copy from pinned memory
  // is read later: do not write to this tensor until it is done (it may be destroyed).
  [[nodiscard]] Tensor to(Device device, bool non_blocking) const;
  [[nodiscard]] Tensor to(DeviceType device, bool non_blocking) const;
  [[nodiscard]] Tensor to(DType dtype, bool non_blocking, bool copy) const;
  [[nodiscard]] Tensor to(Device device, std::optional<DType> dtype, bool non_blocking,
                          bool copy) const;
  /// Converts to the device and the dtype of the options, or of another tensor.
  [[nodiscard]] Tensor to(const TensorOptions& options, bool non_blocking = false) const;
  [[nodiscard]] Tensor to(const Tensor& other, bool non_blocking = false) const;
  /// Copies to page-locked ("pinned") memory of the host, which a GPU's copy engine reads without
  /// the processor. Returns this handle if it is pinned already. The memory is used again when the
  /// tensor is gone and the copies that read it are done; memory_stats does not count it.
  ///
  /// Throws    DeviceError for a tensor of a GPU, and without a CUDA device; OutOfMemoryError
  ///
  ///     const Tensor batch = rand({64, 3, 32, 32}).pin_memory();
  ///     const Tensor there = batch.to("cuda:0", true);  // the host does not wait
  [[nodiscard]] Tensor pin_memory() const;
  [[nodiscard]] Tensor type_as(const Tensor& other) const;
  [[nodiscard]] Tensor toType(DType dtype) const;
  [[nodiscard]] Tensor cpu() const;  ///< to cpu:0
  [[nodiscard]] Tensor cuda(int index = 0) const;
  [[nodiscard]] Tensor clone() const;  ///< a contiguous copy
  /// This handle if the tensor is contiguous, else a contiguous copy.
  [[nodiscard]] Tensor contiguous() const;

  // ---- in-place operations. They increase the version. Outside of NoGrad they throw AutogradError
  // for a leaf that requires a gradient and, if a gradient would be recorded, for a view of one, a
  // view made under NoGrad, and a view that split, chunk or unbind made. A recorded change of
  // another view is a change of its base: the gradients of both, and of all other views, are those
  // of the new values, as in PyTorch. In-place ops throw LayoutError for a tensor whose elements
  // share memory (an expanded one). A call on a temporary returns the tensor itself, to be kept:
  // `zeros({3}).fill_(1)`. But the copies made by x[index], and by a reshape that had to copy, only
  // look like parts of x. If nothing else holds such a copy, a change to it would be lost, so it
  // throws LayoutError (docs/decisions/0014-in-place-on-a-temporary.md).
  /// Copies the values of source: broadcasts, converts the dtype, copies between devices. An
  /// integer tensor takes the values but records no gradient. non_blocking: see to.
  const Tensor& copy_(const Tensor& source, bool non_blocking = false) const&;
  Tensor copy_(const Tensor& source, bool non_blocking = false) const&& {
    return kept("copy_").copy_(source, non_blocking);
  }
  /// Throws DTypeError for a value that the dtype cannot hold, as full does.
  const Tensor& fill_(const Scalar& value) const&;
  Tensor fill_(const Scalar& value) const&& { return kept("fill_").fill_(value); }
  /// The value of a tensor without dimensions, with its gradient.
  const Tensor& fill_(const Tensor& value) const&;
  Tensor fill_(const Tensor& value) const&&;
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
  /// Copies the old values where a gradient needs them, so that other may be this tensor, or share
  /// its memory (PyTorch refuses that in backward).
  const Tensor& mul_(const Tensor& other) const&;
  Tensor mul_(const Tensor& other) const&& { return kept("mul_").mul_(other); }
  /// For add_, mul_ and sub_ with a number: an integer tensor accepts whole numbers, a bool tensor
  /// 0 and 1 (sub_ none). Other values throw DTypeError.
  const Tensor& add_(const Scalar& value) const&;
  Tensor add_(const Scalar& value) const&& { return kept("add_").add_(value); }
  const Tensor& mul_(const Scalar& value) const&;
  Tensor mul_(const Scalar& value) const&& { return kept("mul_").mul_(value); }
  const Tensor& sub_(const Scalar& value) const&;
  Tensor sub_(const Scalar& value) const&& { return kept("sub_").sub_(value); }
  /// Throws DTypeError unless this tensor is floating point.
  const Tensor& div_(const Tensor& other) const&;
  Tensor div_(const Tensor& other) const&& { return kept("div_").div_(other); }
  const Tensor& div_(const Scalar& value) const&;
  Tensor div_(const Scalar& value) const&& { return kept("div_").div_(value); }
  /// As clamp, masked_fill and relu (ops/elementwise.hpp), but the dtype stays: an integer tensor
  /// accepts only whole or infinite bounds.
  const Tensor& clamp_(const std::optional<Scalar>& min,
                       const std::optional<Scalar>& max = {}) const&;
  Tensor clamp_(const std::optional<Scalar>& min, const std::optional<Scalar>& max = {}) const&& {
    return kept("clamp_").clamp_(min, max);
  }
  /// The mask must broadcast to this tensor's shape.
  const Tensor& masked_fill_(const Tensor& mask, const Scalar& value) const&;
  Tensor masked_fill_(const Tensor& mask, const Scalar& value) const&& {
    return kept("masked_fill_").masked_fill_(mask, value);
  }
  const Tensor& relu_() const&;
  Tensor relu_() const&& { return kept("relu_").relu_(); }
  // x += y is x.add_(y), and so on: in place, as in PyTorch. For a new tensor write x = x + y.
#define BRAID_ASSIGNMENT(op)                              \
  const Tensor& operator op(const Tensor& other) const&;  \
  Tensor operator op(const Tensor& other) const&&;        \
  const Tensor& operator op(const Scalar& number) const&; \
  Tensor operator op(const Scalar& number) const&&;
  BRAID_ASSIGNMENT(+=)
  BRAID_ASSIGNMENT(-=)
  BRAID_ASSIGNMENT(*=)
  BRAID_ASSIGNMENT(/=)
  BRAID_ASSIGNMENT(%=)
  BRAID_ASSIGNMENT(&=)
  BRAID_ASSIGNMENT(|=)
  BRAID_ASSIGNMENT(^=)
  BRAID_ASSIGNMENT(<<=)
  BRAID_ASSIGNMENT(>>=)
#undef BRAID_ASSIGNMENT

  // ---- views: they share the storage and are differentiable. Negative dims count from the end.
  // Invalid dims and indices throw IndexError, invalid shapes ShapeError.
  [[nodiscard]] Tensor operator[](std::int64_t index) const;  ///< select(0, index)
  /// Selects rows of dim 0 by an int64 tensor; negative indices count from the end. Returns a copy
  /// of shape index.shape + shape[1:]. For a mask and other dtypes: index({index}).
  [[nodiscard]] Tensor operator[](const Tensor& index) const;
  /// The part at one index of a dim, without that dim.
  [[nodiscard]] Tensor select(std::int64_t dim, std::int64_t index) const;
  /// Elements start, start + step, … below end of a dim. start and end are clamped as in Python.
  /// Throws ArgumentError for a step below 1.
  [[nodiscard]] Tensor slice(std::int64_t dim, std::int64_t start, std::int64_t end = INT64_MAX,
                             std::int64_t step = 1) const;
  /// `length` elements of a dim from `start` on; a negative start counts from the end. Nothing is
  /// clamped: throws IndexError unless all lie inside.
  [[nodiscard]] Tensor narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const;
  [[nodiscard]] Tensor transpose(std::int64_t a, std::int64_t b) const;
  [[nodiscard]] Tensor t() const;  ///< transpose of a matrix; rank <= 2
  [[nodiscard]] Tensor T() const;  ///< all dims in reverse order
  /// The last two dims exchanged. Throws ShapeError for fewer than two. H is for a matrix.
  [[nodiscard]] Tensor mT() const, mH() const, H() const, matrix_H() const, numpy_T() const;
  [[nodiscard]] Tensor trace() const;  ///< the sum of a matrix's main diagonal
  [[nodiscard]] Tensor permute(const IntList& dims) const;
  /// One size may be -1: it is computed from the others. A view if the strides allow one, else a
  /// copy.
  [[nodiscard]] Tensor reshape(const Shape& shape) const;
  /// As reshape, but throws LayoutError if a copy would be needed.
  [[nodiscard]] Tensor view(const Shape& shape) const;
  [[nodiscard]] Tensor flatten(std::int64_t start = 0, std::int64_t end = -1) const;
  [[nodiscard]] Tensor alias() const;  ///< of the whole tensor
  [[nodiscard]] Tensor squeeze(std::int64_t dim) const;
  [[nodiscard]] Tensor squeeze() const;
  [[nodiscard]] Tensor unsqueeze(std::int64_t dim) const;
  /// Broadcasts to a shape without copying: dims that are new or enlarged get stride 0. A size of
  /// -1 keeps the size.
  [[nodiscard]] Tensor expand(const Shape& shape) const;

  // ---- indexing, as in LibTorch; indexing.hpp has Slice, None, Ellipsis
  /// The part of the tensor that Python's x[…] selects, by PyTorch's rules. Integers, slices, None,
  /// "..." give a view; a negative step, a bool or a tensor among the indices gives a copy.
  ///
  /// Index tensors are int64 or int32; they broadcast with each other. A bool tensor of rank k is a
  /// mask of k dims. The dims of the index tensors replace the dims that they select from, or come
  /// first if those are not next to each other. A tensor of rank 0 counts as an integer.
  ///
  /// Gradient  dy at the place of each element, added up where an element is selected several times
  /// Throws    IndexError for too many indices, for an index out of range (on CUDA: index tensors
  ///           when the host next waits for the device), and for a mask of another shape;
  ///           DTypeError, DeviceError, ShapeError for index tensors; ArgumentError for no index
  ///           and for a step of 0
  ///
  ///     using namespace braid::indexing;
  ///     const Tensor x = arange(24).reshape({2, 3, 4});
  ///     x.index({Slice(), -1});                         // [2, 4]
  ///     x.index({"...", Slice(None, None, -1)});        // the last dim reversed
  ///     x.index({0, tensor({{0, 2}, {1, 1}})});         // [2, 2, 4]
  [[nodiscard]] Tensor index(std::initializer_list<indexing::TensorIndex> indices) const;
  [[nodiscard]] Tensor index(const std::vector<indexing::TensorIndex>& indices) const;
  /// Writes the value, which broadcasts to the shape of index(indices), to that part of the tensor;
  /// with `accumulate`, adds it. Where an element is selected several times, sums are added in the
  /// order of the index, and without `accumulate` the last value wins.
  ///
  /// Types     as copy_ and add_; with bools or tensors among the indices: value of this dtype
  /// Gradient  to this tensor, 0 where it was overwritten; to the value
  /// Throws    as index, and as the other in-place ops; on CUDA elements at indices in range may
  ///           then have been written
  ///
  ///     x.index_put_({gt(x, 10)}, 0);
  const Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices,
                           const Tensor& value, bool accumulate = false) const&;
  const Tensor& index_put_(const std::vector<indexing::TensorIndex>& indices, const Tensor& value,
                           bool accumulate = false) const&;
  const Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices,
                           const Scalar& value, bool accumulate = false) const&;
  const Tensor& index_put_(const std::vector<indexing::TensorIndex>& indices, const Scalar& value,
                           bool accumulate = false) const&;
  template <class V>
  Tensor index_put_(std::initializer_list<indexing::TensorIndex> indices, const V& value,
                    bool accumulate = false) const&& {
    return kept("index_put_").index_put_(indices, value, accumulate);
  }
  template <class V>
  Tensor index_put_(const std::vector<indexing::TensorIndex>& indices, const V& value,
                    bool accumulate = false) const&& {
    return kept("index_put_").index_put_(indices, value, accumulate);
  }
  /// A copy of this tensor, changed by index_put_.
  template <class V>
  [[nodiscard]] Tensor index_put(std::initializer_list<indexing::TensorIndex> indices,
                                 const V& value, bool accumulate = false) const {
    return clone().index_put_(indices, value, accumulate);
  }
  template <class V>
  [[nodiscard]] Tensor index_put(const std::vector<indexing::TensorIndex>& indices, const V& value,
                                 bool accumulate = false) const {
    return clone().index_put_(indices, value, accumulate);
  }
  /// The element at one index for each dim, or the part at fewer indices. A view.
  ///
  /// Throws    IndexError for an index out of range, and for more indices than dims
  ///
  ///     x.at({1, -1}).item<float>();
  ///     x(1, -1) = 5;  // writes to x
  [[nodiscard]] Tensor at(const IntList& indices) const;
  template <std::integral... I>
    requires(sizeof...(I) > 0 && !(std::same_as<I, bool> || ...))
  [[nodiscard]] Tensor operator()(I... indices) const {
    return at({static_cast<std::int64_t>(indices)...});
  }
  /// Assignment to what a call returns writes through a view: `x[0] = y` is `x[0].copy_(y)`, where
  /// y may have more leading dims of size 1, and `x(1, 2) = 5` is `x(1, 2).fill_(5)`.
  ///
  /// Throws    LayoutError if nothing else holds the memory, so that the write would be lost:
  ///           x[index], x[mask] and a negative step give copies (use index_put_); as copy_ and
  ///           fill_
  Tensor& operator=(const Tensor& value) &&;
  Tensor& operator=(const Scalar& value) &&;
  /// The parts x[0], x[1], …, as views.
  ///
  /// Throws    IndexError for a scalar
  ///
  ///     for (const Tensor& row : x) print(row);
  [[nodiscard]] RowIterator begin() const;
  [[nodiscard]] RowIterator end() const;

  // ---- reductions (documented in ops/reduce.hpp)
  [[nodiscard]] Tensor sum() const;
  [[nodiscard]] Tensor sum(const IntList& dims, bool keepdim = false) const;
  [[nodiscard]] Tensor mean() const;
  [[nodiscard]] Tensor mean(const IntList& dims, bool keepdim = false) const;
  [[nodiscard]] Tensor max() const;
  [[nodiscard]] Tensor argmax(std::int64_t dim, bool keepdim = false) const;
  /// As var and std (ops/statistics.hpp): LibTorch's `unbiased` is accepted as the correction.
  template <std::same_as<bool> Keep = bool>
  [[nodiscard]] Tensor var(const IntList& dims = {}, double correction = 1,
                           Keep keepdim = false) const {
    return variance(dims, correction, keepdim);
  }
  template <std::same_as<bool> Unbiased> [[nodiscard]] Tensor var(Unbiased unbiased) const {
    return variance({}, unbiased ? 1 : 0, false);
  }
  template <std::same_as<bool> Keep = bool>
  [[nodiscard]] Tensor std(const IntList& dims = {}, double correction = 1,
                           Keep keepdim = false) const {
    return deviation(dims, correction, keepdim);
  }
  template <std::same_as<bool> Unbiased> [[nodiscard]] Tensor std(Unbiased unbiased) const {
    return deviation({}, unbiased ? 1 : 0, false);
  }
  /// Deleted: in x.norm({1}) the 1 could be p or a dim. Write x.norm(1) or x.norm(2, {1}).
  Tensor norm(std::initializer_list<std::int64_t> p_or_dims, bool keepdim = false) const = delete;
  /// Deleted: write x.amax(dims). x.max(dim) gives values and indices along one dim.
  Tensor max(const IntList& dims, bool keepdim = false) const = delete;
  Tensor min(const IntList& dims, bool keepdim = false) const = delete;

  // ---- functions as members (internal/members.def). Those with a _ compute the function of their
  // name, and write the result here. They throw DTypeError if this dtype cannot hold it, and
  // ShapeError if it has another shape.
#define BRAID_OR(value) = value
#define BRAID_MEMBER(Result, name, parameters, arguments) \
  [[nodiscard]] Result name parameters const;
#define BRAID_REPLACE(name, parameters) \
  const Tensor& name parameters const&; \
  Tensor name parameters const&&;
#define BRAID_IN_PLACE(name, parameters, arguments) BRAID_REPLACE(name##_, parameters)
#include <braid/core/internal/members.def>
  /// where(condition, x, other): the elements where the condition is true, else other's.
  [[nodiscard]] Tensor where(const Tensor& condition, const Tensor& other) const;
  [[nodiscard]] Tensor where(const Tensor& condition, const Scalar& other) const;
  /// The smallest and the largest element (ops/composed.hpp).
  [[nodiscard]] std::tuple<Tensor, Tensor> aminmax(const std::optional<std::int64_t>& dim = {},
                                                   bool keepdim = false) const;

  // ---- access to the values
  /// Returns the only element, converted to T (to bool: whether it differs from 0). Waits for the
  /// device. Throws ShapeError unless numel() == 1, DTypeError for a number outside T's range.
  template <class T> [[nodiscard]] T item() const {
    if constexpr (std::is_same_v<T, bool>) return item_double() != 0;
    else if constexpr (std::is_arithmetic_v<T>) return item().to<T>();
    else return static_cast<T>(item().to<float>());
  }
  /// The only element, which converts to any number: `float loss = y.item();`. Throws as item<T>().
  [[nodiscard]] Scalar item() const;
  /// Whether the only element differs from 0, for `if (all(x > 0))`. Throws ShapeError unless
  /// numel() == 1: write all(x) or any(x).
  explicit operator bool() const;
  /// Returns all elements in row-major order, converted to T, in host memory.
  template <Element T> [[nodiscard]] std::vector<T> to_vector() const;
  /// Address of the first element, for access from the host; if the tensor is not contiguous, use
  /// strides(). Prefer `data<const float>()` for reading: with a non-const T this calls
  /// Storage::expose, after which cached copies of the tensor are no longer reused. Throws
  /// DTypeError unless T is the dtype, DeviceError unless the memory is host memory.
  template <class T> [[nodiscard]] T* data() const {
    return static_cast<T*>(data_as(dtype_of<std::remove_const_t<T>>, !std::is_const_v<T>));
  }

  /// Whether both handles refer to the same tensor. (x == y compares the elements.)
  [[nodiscard]] bool is_same(const Tensor& other) const noexcept {
    return impl_.get() == other.impl_.get();
  }
  /// Whether both have the same memory, shape and strides.
  [[nodiscard]] bool is_set_to(const Tensor& other) const;
  /// The elements as x.accessor<float, 2>()[i][j] (accessor.hpp).
  template <class T, std::size_t N> [[nodiscard]] TensorAccessor<T, N> accessor() const&;
  template <class T, std::size_t N> TensorAccessor<T, N> accessor() const&& = delete;
  /// LibTorch's names of data, and the detached tensor.
  template <class T> [[nodiscard]] T* data_ptr() const { return data<T>(); }
  template <class T> [[nodiscard]] T* mutable_data_ptr() const { return data<T>(); }
  template <class T> [[nodiscard]] const T* const_data_ptr() const { return data<const T>(); }
  [[nodiscard]] Tensor data() const { return detach(); }

  /// Identity of the tensor: the same for all handles that refer to it.
  [[nodiscard]] TensorImpl* id() const noexcept { return impl_.get(); }
  [[nodiscard]] const Ref<TensorImpl>& impl() const noexcept { return impl_; }
  /// Prints dtype, shape and device to standard error, as LibTorch does; print(x) has the values.
  void print() const;
  /// Prints as PyTorch does (4 digits, 80 columns, summarised above 1000 elements).
  friend std::ostream& operator<<(std::ostream& out, const Tensor& t);

 private:
  /// Returns this tensor. Throws LayoutError if it is a copy that looks like a part of another
  /// tensor and nothing else holds it.
  [[nodiscard]] const Tensor& kept(const char* op) const;
  [[nodiscard]] Tensor variance(const IntList& dims, double correction, bool keepdim) const;
  [[nodiscard]] Tensor deviation(const IntList& dims, double correction, bool keepdim) const;
  [[nodiscard]] double item_double() const;
  [[nodiscard]] std::int64_t item_int64() const;  // of an integer type
  [[nodiscard]] void* data_as(DType dtype, bool written) const;
  Ref<TensorImpl> impl_;
};

}  // namespace braid

#include <braid/core/accessor.hpp>
#include <braid/core/indexing.hpp>
#include <braid/core/internal/mutable_grad.hpp>
#include <braid/core/tensor_impl.hpp>
