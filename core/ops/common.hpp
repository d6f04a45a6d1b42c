#pragma once
// What the ops share: checks with their texts, loops over operands, gradients of broadcasting.
#include <braid/core/autograd.hpp>
#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>
#include <braid/core/kernel_args/loop.hpp>
#include <braid/core/tensor.hpp>

namespace braid::ops {

/// Throws DeviceError unless both are on one device.
inline void check_device(const char* op, const Tensor& a, const Tensor& b) {
  if (a.device() != b.device())
    throw DeviceError(
        str(op, ": expected tensors on one device, got ", a.device(), " and ", b.device()));
}
inline void check_dtype(const char* op, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    throw DTypeError(str(op, ": expected one dtype, got ", a.dtype(), " and ", b.dtype()));
}
inline void check_floating(const char* op, const Tensor& x) {
  if (!is_floating(x.dtype()))
    throw DTypeError(str(op, ": expected a floating point tensor, got ", x.dtype()));
}

/// Fills a loop over `shape` for up to four operands that broadcast to it (operand 0 first).
/// Neighbouring dims that every operand walks evenly become one.
void fill_loop(Loop& loop, const Shape& shape, std::initializer_list<const TensorImpl*> operands);
/// The same for operands given by their strides, the first of them number `first`.
void fill_loop(Loop& loop, const Shape& sizes, std::initializer_list<const Shape*> strides,
               int first);

/// A view may show one number 2^60 times (expand). An op whose result is small would go through all
/// of them for years, without asking for memory that is not there: above this many it refuses.
inline constexpr std::int64_t kMostRepeated = std::int64_t{1} << 31;
/// Throws ArgumentError if x shows more than kMostRepeated elements and has no memory for them.
void check_repeated(const char* op, const Tensor& x);

/// Which dims a reduction takes: none named is all. Throws IndexError, ShapeError for a dim named
/// twice, and as check_repeated.
struct ReducedDims {
  ReducedDims(const char* op, const Tensor& x, const Shape& dims);
  bool over[kMaxRank] = {};
  Shape kept, kept_dims;   ///< the result's shape without and with the reduced dims as 1
  std::int64_t count = 1;  ///< elements a result, at most 2^63 - 1
};

/// An int64 index on the device of x. Throws DeviceError and DTypeError.
void check_index(const char* op, const Tensor& x, const Tensor& index);
/// gather, under the name of the op that calls it. Recorded.
[[nodiscard]] Tensor gathered(const char* op, const Tensor& x, std::int64_t dim,
                              const Tensor& index);
/// scatter or scatter_add, under the name of the op that calls it. Recorded.
[[nodiscard]] Tensor scattered(const char* op, const Tensor& x, std::int64_t dim,
                               const Tensor& index, const Tensor& src, bool add);

/// The same numbers summed down to `shape`, from which g's shape came by broadcasting. Recorded.
[[nodiscard]] Tensor sum_to(const Tensor& g, const Shape& shape);

/// x as float32 if it holds integers or bools, else x.
[[nodiscard]] inline Tensor as_floating(const Tensor& x) {
  return is_floating(x.dtype()) ? x : x.to(DType::float32);
}

/// False where several elements are one number in memory: of an expanded tensor, and of a view
/// whose strides lead to one place in two ways.
[[nodiscard]] bool has_own_elements(const TensorImpl& t) noexcept;

/// A whole number as an element of an integer type, wrapped around as integers do.
[[nodiscard]] std::int64_t wrapped(const Scalar& value, DType dtype) noexcept;

/// A dense tensor filled with one value, which an integer type wraps around.
[[nodiscard]] Tensor filled(const Shape& shape, const Scalar& value, DType dtype, Device device);

/// The factor of add and sub for operands that were brought to `dtype`: an integer type takes whole
/// ones, wrapped around; bool takes no notice of it (as in PyTorch), if it is whole. Throws
/// DTypeError.
[[nodiscard]] Scalar add_alpha(const char* op, DType dtype, const Scalar& alpha);
/// Throws DTypeError if one of the two is bool: a difference of truth values has no meaning.
void refuse_bool(const char* op, const Tensor& a, const Tensor& b);

/// Writes the value into every element; an integer type wraps it around. No history, no version.
void fill_values(const Tensor& t, const Scalar& value);
/// The value as full and fill_ write it. Throws DTypeError for a number that an integer type
/// (fractions too) or float32 cannot hold; as PyTorch, uint8 wraps a negative one around, float16
/// and bfloat16 make a number that is too large infinite.
[[nodiscard]] Scalar fill_value(const char* op, const Scalar& value, DType dtype);

/// Writes src into dst, converting and broadcasting; same device. No history, no version: for fresh
/// tensors.
void copy_values(const Tensor& dst, const Tensor& src);

/// Dense zeros of `base` with dy written at the view (strides, offset in the dense base): the
/// gradient of every slicing view. Recorded; its gradient is that view.
[[nodiscard]] Tensor embed(const char* op, const Tensor& dy, const Shape& base,
                           const Shape& strides, std::int64_t offset);

/// dx = y <= 0 ? 0 : dy, so that a NaN lets the gradient pass. Recorded.
[[nodiscard]] Tensor relu_backward(const Tensor& y, const Tensor& dy);
/// dx = dy (1 - y²), and dy y (1 - y). Recorded.
[[nodiscard]] Tensor tanh_backward(const Tensor& y, const Tensor& dy);
[[nodiscard]] Tensor sigmoid_backward(const Tensor& y, const Tensor& dy);
/// The gradient of softmax (log: of log_softmax) over the last dim from its output: y * (dy - Σ y
/// dy), or dy - exp(y) Σ dy. Recorded.
[[nodiscard]] Tensor softmax_backward(const Tensor& y, const Tensor& dy, bool log);

/// Rows of dim 0 by an int64 index of rank 1; negative ones count from the end. Recorded.
[[nodiscard]] Tensor index_rows(const Tensor& x, const Tensor& index);
/// The same in the name of `op`, without negative ones.
[[nodiscard]] Tensor pick_rows(const char* op, const Tensor& x, const Tensor& index);

/// Checks that `t` may be changed in place now. `source` is what is written (may be undefined).
void check_in_place(const char* op, const Tensor& t, const Tensor& source);

/// A list of `count` tensors is never longer than this: the handles alone would fill the memory.
inline constexpr std::int64_t kMostParts = std::int64_t{1} << 24;
/// part(0), part(1), …, `count` of them. Throws ArgumentError for more than kMostParts, and
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
