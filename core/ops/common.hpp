#pragma once
// Shared by the ops: checks with their messages, loops over operands, gradients of broadcasting.
#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/kernel_args/loop.hpp>
#include <braid/core/internal/own_elements.hpp>
#include <braid/core/tensor.hpp>

namespace braid::ops {

/// Throws DeviceError unless both tensors are on the same device.
inline void check_device(const char* op, const Tensor& a, const Tensor& b) {
  if (a.device() != b.device())
    throw DeviceError(
        str(op, ": expected tensors on one device, got ", a.device(), " and ", b.device()));
}
/// Returns the device on which an elementwise op of these tensors runs: that of the first one
/// that is not a CPU tensor without dims, or of the first one if all are; see beside().
[[nodiscard]] Device common_device(std::initializer_list<const Tensor*> tensors);
/// Returns t, or its copy on `device` if t has no dims and is on the CPU, but the device is of
/// another type: PyTorch accepts such an operand as a number. Recorded. Throws DeviceError for any
/// other tensor of another device.
[[nodiscard]] Tensor beside(const char* op, const Tensor& t, Device device);
/// Throws as beside() does.
void check_beside(const char* op, const Tensor& t, Device device);
inline void check_dtype(const char* op, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    throw DTypeError(str(op, ": expected one dtype, got ", a.dtype(), " and ", b.dtype()));
}
inline void check_floating(const char* op, const Tensor& x) {
  if (!is_floating(x.dtype()))
    throw DTypeError(str(op, ": expected a floating point tensor, got ", x.dtype()));
}

/// Fills a loop over `shape` for up to four operands that broadcast to it (operand 0 first). Merges
/// neighbouring dims that have one common stride in every operand.
void fill_loop(Loop& loop, const Shape& shape, std::initializer_list<const TensorImpl*> operands);
/// The same for operands given by their strides. They become the loop's operands from `first` on.
void fill_loop(Loop& loop, const Shape& sizes, std::initializer_list<const Shape*> strides,
               int first);

/// The largest number of elements that share memory. A view may repeat one element 2^60 times
/// (expand). An op with a small result would not run out of memory, but would take years: above
/// this limit it throws.
inline constexpr std::int64_t kMostRepeated = std::int64_t{1} << 31;
/// Throws ArgumentError if x has more than kMostRepeated elements, and more than its storage.
void check_repeated(const char* op, const Tensor& x);

/// The dims that a reduction reduces; an empty list means all. Throws IndexError for a dim out of
/// range, ShapeError for a duplicate dim, and ArgumentError as check_repeated does.
struct ReducedDims {
  ReducedDims(const char* op, const Tensor& x, const IntList& dims);
  bool over[kMaxRank] = {};
  Shape kept, kept_dims;   ///< shape of the result, without the reduced dims and with them as 1
  std::int64_t count = 1;  ///< elements per result, at most 2^63 - 1
};

/// Throws DTypeError unless the index is int64, and DeviceError unless it is on the device of x.
void check_index(const char* op, const Tensor& x, const Tensor& index);
/// gather, recorded under the name of the op that calls it.
[[nodiscard]] Tensor gathered(const char* op, const Tensor& x, std::int64_t dim,
                              const Tensor& index);
/// Writes or adds src, of the index's shape, at the index along dim d of y. Not recorded, and
/// leaves the version counter as it is.
void scatter_values(const char* op, const Tensor& y, int d, const Tensor& index, const Tensor& src,
                    bool add);
/// Returns the places of the true elements of a bool mask in row-major order, as int64 of rank 1.
/// Waits for the device.
[[nodiscard]] Tensor places_of_true(const Tensor& mask);
/// scatter or scatter_add, recorded under the name of the op that calls it.
[[nodiscard]] Tensor scattered(const char* op, const Tensor& x, std::int64_t dim,
                               const Tensor& index, const Tensor& src, bool add);

/// Sums g over the dims that broadcasting from `shape` has added or expanded. Recorded.
[[nodiscard]] Tensor sum_to(const Tensor& g, const Shape& shape);

/// Saves a tensor that only the gradients of these inputs need; an empty one if none has one.
[[nodiscard]] inline SavedTensor saved_for(std::initializer_list<detail::Input> inputs,
                                           const Tensor& t) {
  return needs_grad(inputs) ? SavedTensor(t) : SavedTensor();
}

/// Returns x as float32 if it holds integers or bools, else x.
[[nodiscard]] inline Tensor as_floating(const Tensor& x) {
  return is_floating(x.dtype()) ? x : x.to(DType::float32);
}

/// The dtype represents each whole number from 0 up to, and without, this one.
[[nodiscard]] std::int64_t exact_below(DType dtype) noexcept;

/// Returns a whole number as an element of an integer type. A number out of range wraps around.
[[nodiscard]] std::int64_t wrapped(const Scalar& value, DType dtype) noexcept;

/// The device on which a factory creates. Throws DeviceError if its memory is to be pinned, and
/// cannot be.
[[nodiscard]] Device device_of(const FactoryOptions& options);
/// The result of a factory, with the options that say more than device and dtype.
[[nodiscard]] Tensor finish(const Tensor& t, const FactoryOptions& options);
/// As make_tensor, in pinned memory of a CPU device.
[[nodiscard]] Tensor make_pinned(const Shape& shape, DType dtype, Device device);
/// Returns a contiguous tensor filled with one value, which wraps around in an integer type.
[[nodiscard]] Tensor filled(const Shape& shape, const Scalar& value, DType dtype, Device device);
/// make_tensor or make_pinned, as the options say.
[[nodiscard]] Tensor made(const Shape& shape, DType dtype, const FactoryOptions& options);

/// Returns the factor of add and sub for operands of type `dtype`. Integer types and bool require a
/// whole number and throw DTypeError otherwise; in an integer type it wraps around, for bool it
/// becomes 1 (as in PyTorch).
[[nodiscard]] Scalar add_alpha(const char* op, DType dtype, const Scalar& alpha);
/// Throws DTypeError if a or b is bool, for which a difference has no meaning.
void refuse_bool(const char* op, const Tensor& a, const Tensor& b);

/// Writes the value, which wraps around in an integer type, into every element. Not recorded, and
/// leaves the version counter as it is.
void fill_values(const Tensor& t, const Scalar& value);
/// Returns the value as full and fill_ write it. Throws DTypeError for a number that an integer
/// type (fractions too) or float32 cannot hold. As in PyTorch, a negative number wraps around in
/// uint8, and a number that is too large for float16 or bfloat16 becomes infinite.
[[nodiscard]] Scalar fill_value(const char* op, const Scalar& value, DType dtype);

/// Copies src into dst on the same device, with conversion and broadcasting. Not recorded, and
/// leaves the version counter as it is: for new tensors.
void copy_values(const Tensor& dst, const Tensor& src);

/// Returns the view (shape, strides, offset) of x after contiguous(). Recorded; its gradient is
/// embed, so the elements of the view must not share memory.
[[nodiscard]] Tensor dense_view(const char* op, const Tensor& x, const Shape& shape,
                                const Shape& strides, std::int64_t offset);
/// Returns a contiguous tensor of shape `base` that holds dy at the view (strides, offset), and 0
/// elsewhere. This is the gradient of every slicing view. Recorded; its gradient is that view.
[[nodiscard]] Tensor embed(const char* op, const Tensor& dy, const Shape& base,
                           const Shape& strides, std::int64_t offset);

/// Returns y, a view of memory that its op has made, as the op's result: no view, with its graph.
[[nodiscard]] Tensor own_result(Tensor y) noexcept;
/// Returns y, which consists of views of x or of copies, as contiguous separate memory. Recorded.
[[nodiscard]] Tensor own_copy(const Tensor& y, const Tensor& x);

/// dx = y <= 0 ? 0 : dy, so that the gradient is dy where y is NaN. Recorded.
[[nodiscard]] Tensor relu_backward(const Tensor& y, const Tensor& dy);
/// dx = dy (1 - y²). Recorded.
[[nodiscard]] Tensor tanh_backward(const Tensor& y, const Tensor& dy);
/// dx = dy y (1 - y). Recorded.
[[nodiscard]] Tensor sigmoid_backward(const Tensor& y, const Tensor& dy);
/// The gradient of softmax over the last dim, computed from its output: y * (dy - Σ y dy). With
/// `log`, that of log_softmax: dy - exp(y) Σ dy. Recorded.
[[nodiscard]] Tensor softmax_backward(const Tensor& y, const Tensor& dy, bool log);

/// Selects rows of dim 0 by an int64 index of rank 1. Negative indices count from the end.
/// Recorded.
[[nodiscard]] Tensor index_rows(const Tensor& x, const Tensor& index);
/// The same under the name of `op`, without negative indices.
[[nodiscard]] Tensor pick_rows(const char* op, const Tensor& x, const Tensor& index);

/// Throws unless `t` may be changed in place now. `source`: the tensor to be written, may be
/// undefined.
void check_in_place(const char* op, const Tensor& t, const Tensor& source);

/// The largest number of tensors in a list. With more, the handles alone would fill the memory.
inline constexpr std::int64_t kMostParts = std::int64_t{1} << 24;
/// Returns part(0), …, part(count - 1). Throws ArgumentError if count > kMostParts, and
/// OutOfMemoryError.
template <class F>
[[nodiscard]] std::vector<Tensor> listed(const char* op, std::int64_t count, F part) {
  if (count > kMostParts)
    throw ArgumentError(str(op, ": expected at most ", kMostParts, " parts, got ", count));
  try {
    std::vector<Tensor> parts;
    parts.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) parts.push_back(part(i));
    return parts;
  } catch (const std::bad_alloc&) {
    braid::detail::no_host_memory(op, Device());
  }
}

}  // namespace braid::ops
