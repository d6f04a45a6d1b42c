#pragma once
#include <concepts>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>
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
  Literal(const Scalar& number)
      : kind(static_cast<Kind>(number.kind())),
        value(number.to_double()),
        integer(number.to_int64()) {}
  Literal(std::initializer_list<Literal> list) : items(list) {}

 private:
  // The integer of a floating-point number is never used, and may not exist (NaN).
  template <class T> static constexpr std::int64_t integer_of(T v) {
    if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(v);
    else return 0;
  }
};

namespace detail {
template <class R> struct NestedElement {};
template <class R>
  requires std::is_arithmetic_v<R> || Element<R>
struct NestedElement<R> {
  using type = std::conditional_t<Element<R>, R, std::int64_t>;
};
/// What has a size and can be read from begin to end.
template <class R>
concept Readable = requires(const R& r) {
  std::size(r);
  *std::begin(r);
};
template <class R>
using ItemOf = std::remove_cvref_t<decltype(*std::begin(std::declval<const R&>()))>;
template <Readable R> struct NestedElement<R> : NestedElement<ItemOf<R>> {};
/// The dtype's type of the numbers of nested ranges.
template <class R> using ElementOf = typename NestedElement<std::remove_cv_t<R>>::type;
/// Vectors, arrays and spans of numbers, or of such ranges. A vector of elements has its own
/// overload, braces are a Literal, and text is no list of numbers.
template <class R>
concept NestedNumbers =
    Readable<R> && requires { typename ElementOf<R>; } &&
    !std::same_as<R, std::vector<ElementOf<R>>> && !std::convertible_to<const R&, Literal> &&
    !std::convertible_to<const R&, std::string_view>;

[[noreturn]] void ragged(std::int64_t expected, int depth, std::int64_t got);
template <class T, class R>
void flatten_into(std::vector<T>& flat, Shape& shape, const R& numbers, int depth) {
  const auto size = static_cast<std::int64_t>(std::size(numbers));
  if (depth == shape.rank()) shape.push_back(size);
  else if (shape[depth] != size) ragged(shape[depth], depth, size);
  for (const auto& item : numbers) {
    if constexpr (Readable<std::remove_cvref_t<decltype(item)>>)
      flatten_into(flat, shape, item, depth + 1);
    else flat.push_back(static_cast<T>(item));
  }
}
/// The options of a factory in its second form.
template <OptionsInLibTorchsForm O>
[[nodiscard]] FactoryOptions options_of(const O& options) noexcept {
  return TensorOptions(options);
}
/// Options that name t's device and dtype where they name none.
[[nodiscard]] FactoryOptions like(const Tensor& t, FactoryOptions options);
}  // namespace detail

/// A tensor of the given numbers: float32 if any is floating point, else int64 if any is an
/// integer, else bool, unless options.dtype is set.
///
/// Throws    ShapeError for ragged braces; DTypeError for a number outside the range of an integer
///           options.dtype, where negative numbers wrap around in uint8
///
///     tensor({{1.0, 2.0}, {3.0, 4.0}});               // float32 [2, 2]
///     tensor({1, 2, 3}, {.dtype = DType::bfloat16});  // else int64
[[nodiscard]] Tensor tensor(const Literal& numbers, const FactoryOptions& options = {});
/// A tensor of one dimension from a vector; its dtype is that of T unless options.dtype is set.
template <Element T>
[[nodiscard]] Tensor tensor(const std::vector<T>& numbers, const FactoryOptions& options = {});
/// A tensor of the numbers of an array or a span, or of nested vectors, arrays and spans.
///
/// Throws    ShapeError for ragged ones
///
///     const std::vector<std::vector<float>> rows{{1, 2}, {3, 4}};
///     tensor(rows);                           // float32 [2, 2]
///     tensor(std::array<std::int64_t, 3>{});  // int64 [3]
template <detail::NestedNumbers R>
[[nodiscard]] Tensor tensor(const R& numbers, const FactoryOptions& options = {}) {
  std::vector<detail::ElementOf<R>> flat;
  Shape shape;
  detail::flatten_into(flat, shape, numbers, 0);
  return tensor(flat, options).reshape(shape);
}

/// Uninitialised (a debug build fills floating-point tensors with NaN).
[[nodiscard]] Tensor empty(const Shape& shape, const FactoryOptions& options = {});
/// Filled with 0, and with 1.
///
///     zeros({2, 3}, {.device = device, .dtype = DType::float64});
[[nodiscard]] Tensor zeros(const Shape& shape, const FactoryOptions& options = {});
[[nodiscard]] Tensor ones(const Shape& shape, const FactoryOptions& options = {});
/// Filled with `value`. The dtype is that of the number unless options.dtype is set: full({2}, 7)
/// is int64, with 7.0 float32, with true bool. As in PyTorch, uint8 wraps -1 around to 255, and a
/// value too large for float16 or bfloat16 becomes infinite.
///
/// Throws    DTypeError for a value that an integer dtype (fractions, NaN) or float32 cannot hold
[[nodiscard]] Tensor full(const Shape& shape, const Scalar& value,
                          const FactoryOptions& options = {});
/// start, start + step, … up to end, which is excluded: int64 if all three are integers, else
/// float32, unless options.dtype is set. Fractions are computed in float64 as start + i step.
///
/// Throws    ArgumentError if step is 0 or leads away from end, and for numbers that are not
///           finite; DTypeError for fractions in an integer dtype
///
///     arange(4);           // 0 1 2 3
///     arange(0, 1, 0.25);  // 0 0.25 0.5 0.75
[[nodiscard]] Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step = 1,
                            const FactoryOptions& options = {});
[[nodiscard]] Tensor arange(const Scalar& start, const Scalar& end, const FactoryOptions& options);
[[nodiscard]] Tensor arange(const Scalar& end, const FactoryOptions& options = {});
/// `steps` numbers from start to end, both included; float32 unless options.dtype is set. Each is
/// computed in float64 from the closer end. One step gives start.
///
/// Throws    ArgumentError for negative steps, DTypeError for integers and bool
[[nodiscard]] Tensor linspace(double start, double end, std::int64_t steps,
                              const FactoryOptions& options = {});
/// base to the power of each number of linspace(start, end, steps), computed in float64.
///
/// Throws    as linspace
[[nodiscard]] Tensor logspace(double start, double end, std::int64_t steps, double base = 10,
                              const FactoryOptions& options = {});
/// The identity matrix [n, n], or [n, m] with ones on its diagonal.
[[nodiscard]] Tensor eye(std::int64_t n, const FactoryOptions& options = {});
[[nodiscard]] Tensor eye(std::int64_t n, std::int64_t m, const FactoryOptions& options = {});
/// A new tensor with the shape of t. Device and dtype are those of t unless options set them. It is
/// made on that device, not copied to it.
[[nodiscard]] Tensor empty_like(const Tensor& t, const FactoryOptions& options = {});
[[nodiscard]] Tensor zeros_like(const Tensor& t, const FactoryOptions& options = {});
[[nodiscard]] Tensor ones_like(const Tensor& t, const FactoryOptions& options = {});
/// The same, filled with `value`.
///
/// Throws    DTypeError as full does
[[nodiscard]] Tensor full_like(const Tensor& t, const Scalar& value,
                               const FactoryOptions& options = {});

/// The second form of every factory: LibTorch's TensorOptions, a dtype or a device in place of the
/// options.
///
///     zeros({2, 3}, kInt64);
///     zeros({2, 3}, dtype(kFloat64).requires_grad(true));
#define BRAID_FACTORY(name, parameters, arguments)                                   \
  template <detail::OptionsInLibTorchsForm O> [[nodiscard]] Tensor name parameters { \
    return name arguments;                                                           \
  }
BRAID_FACTORY(tensor, (const Literal& numbers, const O& options),
              (numbers, detail::options_of(options)))
BRAID_FACTORY(empty, (const Shape& shape, const O& options), (shape, detail::options_of(options)))
BRAID_FACTORY(zeros, (const Shape& shape, const O& options), (shape, detail::options_of(options)))
BRAID_FACTORY(ones, (const Shape& shape, const O& options), (shape, detail::options_of(options)))
BRAID_FACTORY(full, (const Shape& shape, const Scalar& value, const O& options),
              (shape, value, detail::options_of(options)))
BRAID_FACTORY(arange,
              (const Scalar& start, const Scalar& end, const Scalar& step, const O& options),
              (start, end, step, detail::options_of(options)))
BRAID_FACTORY(arange, (const Scalar& start, const Scalar& end, const O& options),
              (start, end, 1, detail::options_of(options)))
BRAID_FACTORY(arange, (const Scalar& end, const O& options), (end, detail::options_of(options)))
BRAID_FACTORY(linspace, (double start, double end, std::int64_t steps, const O& options),
              (start, end, steps, detail::options_of(options)))
BRAID_FACTORY(logspace,
              (double start, double end, std::int64_t steps, double base, const O& options),
              (start, end, steps, base, detail::options_of(options)))
BRAID_FACTORY(eye, (std::int64_t n, const O& options), (n, detail::options_of(options)))
BRAID_FACTORY(eye, (std::int64_t n, std::int64_t m, const O& options),
              (n, m, detail::options_of(options)))
BRAID_FACTORY(empty_like, (const Tensor& t, const O& options), (t, detail::options_of(options)))
BRAID_FACTORY(zeros_like, (const Tensor& t, const O& options), (t, detail::options_of(options)))
BRAID_FACTORY(ones_like, (const Tensor& t, const O& options), (t, detail::options_of(options)))
BRAID_FACTORY(full_like, (const Tensor& t, const Scalar& value, const O& options),
              (t, value, detail::options_of(options)))
#undef BRAID_FACTORY
template <class R, detail::OptionsInLibTorchsForm O>
  requires Element<R>
[[nodiscard]] Tensor tensor(const std::vector<R>& numbers, const O& options) {
  return tensor(numbers, detail::options_of(options));
}
template <detail::NestedNumbers R, detail::OptionsInLibTorchsForm O>
[[nodiscard]] Tensor tensor(const R& numbers, const O& options) {
  return tensor(numbers, detail::options_of(options));
}

namespace detail {
[[nodiscard]] Tensor from_blob(void* data, const Shape& shape, const Shape& strides,
                               std::function<void(void*)> deleter, const TensorOptions& options);
[[noreturn]] void other_dtype(DType expected, DType got);
template <class T> [[nodiscard]] TensorOptions blob_options(const TensorOptions& options) {
  if constexpr (std::is_void_v<T>) return options;
  else if (!options.has_dtype()) return options.dtype(dtype_of<T>);
  else if (options.dtype() != dtype_of<T>) other_dtype(dtype_of<T>, options.dtype());
  else return options;
}
}  // namespace detail

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
/// LibTorch's forms: a deleter that gets the pointer; strides, in elements; options. The dtype is
/// that of the options, by default that of T, and for void* float32.
///
/// Throws    DTypeError for options with another dtype than T's; ShapeError for strides that are
///           negative or not one for each size
template <class T, detail::OptionsInLibTorchsForm O>
[[nodiscard]] Tensor from_blob(T* data, const Shape& shape, const O& options) {
  return detail::from_blob(data, shape, contiguous_strides(shape), {},
                           detail::blob_options<T>(options));
}
template <class T>
[[nodiscard]] Tensor from_blob(T* data, const Shape& shape, const Shape& strides,
                               const TensorOptions& options = {}) {
  return detail::from_blob(data, shape, strides, {}, detail::blob_options<T>(options));
}
template <class T, std::invocable<void*> D>
[[nodiscard]] Tensor from_blob(T* data, const Shape& shape, D deleter,
                               const TensorOptions& options = {}) {
  return detail::from_blob(data, shape, contiguous_strides(shape), std::move(deleter),
                           detail::blob_options<T>(options));
}
template <class T, std::invocable<void*> D>
[[nodiscard]] Tensor from_blob(T* data, const Shape& shape, const Shape& strides, D deleter,
                               const TensorOptions& options = {}) {
  return detail::from_blob(data, shape, strides, std::move(deleter),
                           detail::blob_options<T>(options));
}

template <class T>
Tensor from_blob(T* data, const Shape& shape, std::function<void()> deleter, Device device) {
  return from_blob(static_cast<void*>(data), shape, dtype_of<T>, std::move(deleter), device);
}

}  // namespace braid
