#pragma once
#include <initializer_list>
#include <type_traits>
#include <vector>

#include <braid/core/tensor.hpp>

namespace braid {

/// Nested braces of numbers, of any depth. One recursive type, so that {{1.0}, {2.0}} is not
/// ambiguous.
struct Literal {
  enum class Kind : std::uint8_t { boolean, integer, floating, list };
  Kind kind = Kind::list;
  double value = 0;
  std::int64_t integer = 0;
  std::vector<Literal> items;
  template <class T>
    requires std::is_arithmetic_v<T>
  Literal(T v)
      : kind(std::is_same_v<T, bool> ? Kind::boolean
             : std::is_integral_v<T> ? Kind::integer
                                     : Kind::floating),
        value(static_cast<double>(v)),
        integer(integer_of(v)) {}
  Literal(std::initializer_list<Literal> list) : items(list) {}

 private:
  // The integer of a floating-point number is never used, and may not exist (NaN).
  template <class T> static constexpr std::int64_t integer_of(T v) {
    if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(v);
    else return 0;
  }
};

/// A tensor of the given numbers: float32 if any is floating point, else int64 if any is an
/// integer, else bool, unless options.dtype is set.
///
/// Throws    ShapeError for ragged braces
///
///     tensor({{1.0, 2.0}, {3.0, 4.0}});               // float32 [2, 2]
///     tensor({1, 2, 3}, {.dtype = DType::bfloat16});  // else int64
[[nodiscard]] Tensor tensor(const Literal& numbers, const TensorOptions& options = {});
/// A tensor of one dimension from a vector; its dtype is that of T unless options.dtype is set.
template <Element T>
[[nodiscard]] Tensor tensor(const std::vector<T>& numbers, const TensorOptions& options = {});

/// Uninitialised (a debug build fills floating-point tensors with NaN).
[[nodiscard]] Tensor empty(const Shape& shape, const TensorOptions& options = {});
/// Filled with 0, and with 1.
///
///     zeros({2, 3}, {.device = device, .dtype = DType::float64});
[[nodiscard]] Tensor zeros(const Shape& shape, const TensorOptions& options = {});
[[nodiscard]] Tensor ones(const Shape& shape, const TensorOptions& options = {});
/// Filled with `value`. The dtype is that of the number unless options.dtype is set: full({2}, 7)
/// is int64, with 7.0 float32, with true bool. As in PyTorch, uint8 wraps -1 around to 255, and a
/// value too large for float16 or bfloat16 becomes infinite.
///
/// Throws    DTypeError for a value that an integer dtype (fractions, NaN) or float32 cannot hold
[[nodiscard]] Tensor full(const Shape& shape, const Scalar& value,
                          const TensorOptions& options = {});
/// start, start + step, … up to end, which is excluded: int64 if all three are integers, else
/// float32, unless options.dtype is set. Fractions are computed in float64 as start + i step.
///
/// Throws    ArgumentError if step is 0 or leads away from end, and for numbers that are not
///           finite; DTypeError for fractions in an integer dtype
///
///     arange(4);           // 0 1 2 3
///     arange(0, 1, 0.25);  // 0 0.25 0.5 0.75
[[nodiscard]] Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step = 1,
                            const TensorOptions& options = {});
[[nodiscard]] Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options);
[[nodiscard]] Tensor arange(const Scalar& end, const TensorOptions& options = {});
/// `steps` numbers from start to end, both included; float32 unless options.dtype is set. Each is
/// computed in float64 from the closer end. One step gives start.
///
/// Throws    ArgumentError for negative steps, DTypeError for integers and bool
[[nodiscard]] Tensor linspace(double start, double end, std::int64_t steps,
                              const TensorOptions& options = {});
/// The identity matrix [n, n].
[[nodiscard]] Tensor eye(std::int64_t n, const TensorOptions& options = {});
/// A new tensor with the shape of t. Device and dtype are those of t unless options set them. It is
/// made on that device, not copied to it.
[[nodiscard]] Tensor empty_like(const Tensor& t, const TensorOptions& options = {});
[[nodiscard]] Tensor zeros_like(const Tensor& t, const TensorOptions& options = {});
[[nodiscard]] Tensor ones_like(const Tensor& t, const TensorOptions& options = {});
/// The same, filled with `value`.
///
/// Throws    DTypeError as full does
[[nodiscard]] Tensor full_like(const Tensor& t, const Scalar& value,
                               const TensorOptions& options = {});

/// A tensor on memory that the caller owns, contiguous, not copied. `deleter` (may be empty) is
/// called when the last tensor on it is destroyed. The memory must be on `device` (default cpu:0),
/// hold shape.numel() elements of T and be aligned for T.
///
/// Throws    ArgumentError for a null pointer with elements, and for a pointer that is not aligned
///
///     std::vector<float> samples(12);
///     const Tensor view = from_blob(samples.data(), {3, 4});  // samples must live longer
template <class T>
[[nodiscard]] Tensor from_blob(T* data, const Shape& shape, std::function<void()> deleter = {},
                               Device device = {});
[[nodiscard]] Tensor from_blob(void* data, const Shape& shape, DType dtype,
                               std::function<void()> deleter = {}, Device device = {});

template <class T>
Tensor from_blob(T* data, const Shape& shape, std::function<void()> deleter, Device device) {
  return from_blob(static_cast<void*>(data), shape, dtype_of<T>, std::move(deleter), device);
}

}  // namespace braid
