#include <braid/core/ops/create.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "common.hpp"

namespace braid {
namespace {

void collect(const Literal& l, const Shape& shape, int depth, std::vector<const Literal*>& flat) {
  if (l.kind != Literal::Kind::list) {
    if (depth != shape.rank())
      throw ShapeError(str("tensor: expected braces nested to one depth, got a number at depth ",
                           depth, " and at depth ", shape.rank()));
    flat.push_back(&l);
    return;
  }
  if (depth >= shape.rank() || static_cast<std::int64_t>(l.items.size()) != shape[depth])
    throw ShapeError(str("tensor: expected ", depth < shape.rank() ? shape[depth] : 0,
                         " items at depth ", depth, ", got ", l.items.size()));
  for (const Literal& item : l.items) collect(item, shape, depth + 1, flat);
}

/// True if an integer type holds the number without its fraction; negative ones wrap around in
/// uint8. Other types hold any number.
bool in_range(const Scalar& value, DType dtype) {
  const double number = value.to_double();
  switch (dtype) {
    case DType::uint8: return number > -256 && number < 256;
    case DType::int32: return number > -0x1p31 - 1 && number < 0x1p31;
    case DType::int64: return !value.is_floating() || (number >= -0x1p63 && number < 0x1p63);
    default: return true;
  }
}

[[noreturn]] void does_not_fit(const char* op, const Scalar& value, DType dtype) {
  throw DTypeError(str(op, ": expected a number that ", dtype, " can hold, got ", value));
}

/// Throws for a number that the wanted dtype cannot hold. `from`: the dtype of all numbers.
template <class F>
void check_numbers(std::size_t count, DType from, const FactoryOptions& options, F number) {
  if (!options.dtype || !is_integral(*options.dtype) || *options.dtype == from) return;
  for (std::size_t i = 0; i < count; ++i)
    if (const Scalar value = number(i); !in_range(value, *options.dtype))
      does_not_fit("tensor", value, *options.dtype);
}

Tensor to_options(const Tensor& host, const FactoryOptions& options, DType natural) {
  return ops::finish(host.to(ops::device_of(options), options.dtype.value_or(natural)), options);
}

}  // namespace

namespace ops {

Device device_of(const FactoryOptions& options) {
  const Device device = options.device ? *options.device : get_default_device();
  if (options.pinned_memory) (void)pinned_allocator_for("pinned_memory", device);
  return device;
}

Tensor finish(const Tensor& t, const FactoryOptions& options) {
  const Tensor y = options.pinned_memory ? t.pin_memory() : t;
  return options.requires_grad ? y.requires_grad_() : y;
}

Tensor made(const Shape& shape, DType dtype, const FactoryOptions& options) {
  const Device device = device_of(options);
  return options.pinned_memory ? make_pinned(shape, dtype, device)
                               : make_tensor(shape, dtype, device);
}

Tensor filled(const Shape& shape, const Scalar& value, DType dtype, Device device) {
  Tensor t = make_tensor(shape, dtype, device);
  fill_values(t, value);
  return t;
}

void fill_values(const Tensor& t, const Scalar& value) {
  if (t.numel() == 0) return;
  FillArgs args;
  args.dtype = t.dtype();
  args.out = t.id()->data();
  args.integer = wrapped(value, t.dtype());
  args.value = is_integral(t.dtype()) ? static_cast<double>(args.integer) : value.to_double();
  fill_loop(args.loop, t.shape(), {t.id()});
  launch("fill", t.device(), &KernelTable::fill, args);
}

std::int64_t exact_below(DType dtype) noexcept {
  switch (dtype) {
    case DType::bool_: return 2;
    case DType::uint8: return 256;
    case DType::int32: return std::int64_t{1} << 31;
    case DType::float16: return (1 << 11) + 1;
    case DType::bfloat16: return (1 << 8) + 1;
    case DType::float32: return (1 << 24) + 1;
    case DType::float64: return (std::int64_t{1} << 53) + 1;
    default: return std::numeric_limits<std::int64_t>::max();
  }
}

std::int64_t wrapped(const Scalar& value, DType dtype) noexcept {
  const std::int64_t whole = value.to_int64();
  if (dtype == DType::uint8) return static_cast<std::uint8_t>(whole);
  if (dtype == DType::int32) return static_cast<std::int32_t>(whole);
  return whole;
}

Scalar fill_value(const char* op, const Scalar& value, DType dtype) {
  bool fits = in_range(value, dtype);
  if (is_integral(dtype)) fits = fits && value.is_whole();
  else if (dtype == DType::float32)
    fits = !(std::abs(value.to_double()) > std::numeric_limits<float>::max()) ||
           std::isinf(value.to_double());
  if (!fits) does_not_fit(op, value, dtype);
  return value;
}
}  // namespace ops

Tensor tensor(const Literal& numbers, const FactoryOptions& options) {
  Shape shape;
  for (const Literal* l = &numbers; l->kind == Literal::Kind::list;) {
    shape.push_back(static_cast<std::int64_t>(l->items.size()));
    if (l->items.empty()) break;
    l = &l->items.front();
  }
  std::vector<const Literal*> flat;
  collect(numbers, shape, 0, flat);
  Literal::Kind kind = flat.empty() ? Literal::Kind::floating : Literal::Kind::boolean;
  for (const Literal* l : flat) kind = std::max(kind, l->kind);
  if (kind == Literal::Kind::floating) {
    // float64 keeps all digits until the conversion to the requested dtype
    check_numbers(flat.size(), DType::float64, options,
                  [&](std::size_t i) { return Scalar(flat[i]->value); });
    const Tensor host = make_tensor(shape, DType::float64, Device());
    for (std::size_t i = 0; i < flat.size(); ++i)
      static_cast<double*>(host.id()->data())[i] = flat[i]->value;
    return to_options(host, options, DType::float32);
  }
  check_numbers(flat.size(), DType::int64, options,
                [&](std::size_t i) { return Scalar(flat[i]->integer); });
  const Tensor host = make_tensor(shape, DType::int64, Device());
  for (std::size_t i = 0; i < flat.size(); ++i)
    static_cast<std::int64_t*>(host.id()->data())[i] = flat[i]->integer;
  return to_options(host, options, kind == Literal::Kind::integer ? DType::int64 : DType::bool_);
}

template <Element T> Tensor tensor(const std::vector<T>& numbers, const FactoryOptions& options) {
  const Tensor host =
      make_tensor({static_cast<std::int64_t>(numbers.size())}, dtype_of<T>, Device());
  check_numbers(numbers.size(), dtype_of<T>, options, [&](std::size_t i) {
    if constexpr (std::is_arithmetic_v<T>) return Scalar(static_cast<T>(numbers[i]));
    else return Scalar(static_cast<float>(numbers[i]));
  });
  for (std::size_t i = 0; i < numbers.size(); ++i)
    static_cast<T*>(host.id()->data())[i] = numbers[i];
  return to_options(host, options, dtype_of<T>);
}
template Tensor tensor(const std::vector<bool>&, const FactoryOptions&);
template Tensor tensor(const std::vector<std::uint8_t>&, const FactoryOptions&);
template Tensor tensor(const std::vector<std::int32_t>&, const FactoryOptions&);
template Tensor tensor(const std::vector<std::int64_t>&, const FactoryOptions&);
template Tensor tensor(const std::vector<float16>&, const FactoryOptions&);
template Tensor tensor(const std::vector<bfloat16>&, const FactoryOptions&);
template Tensor tensor(const std::vector<float>&, const FactoryOptions&);
template Tensor tensor(const std::vector<double>&, const FactoryOptions&);

namespace {
Tensor full_of(const char* op, const Shape& shape, const Scalar& value, DType natural,
               const FactoryOptions& options) {
  const DType dtype = options.dtype.value_or(natural);
  const Scalar number = ops::fill_value(op, value, dtype);
  const Tensor t = ops::made(shape, dtype, options);
  ops::fill_values(t, number);
  return ops::finish(t, options);
}
}  // namespace

Tensor full(const Shape& shape, const Scalar& value, const FactoryOptions& options) {
  return full_of("full", shape, value, dtype_of_number(value), options);
}
Tensor zeros(const Shape& shape, const FactoryOptions& options) {
  return full_of("zeros", shape, 0, DType::float32, options);
}
Tensor ones(const Shape& shape, const FactoryOptions& options) {
  return full_of("ones", shape, 1, DType::float32, options);
}

Tensor empty(const Shape& shape, const FactoryOptions& options) {
  const DType dtype = options.dtype.value_or(DType::float32);
#ifndef NDEBUG
  if (is_floating(dtype)) return full(shape, std::numeric_limits<double>::quiet_NaN(), options);
#endif
  return ops::finish(ops::made(shape, dtype, options), options);
}

FactoryOptions detail::like(const Tensor& t, FactoryOptions options) {
  if (!options.device) options.device = t.device();
  if (!options.dtype) options.dtype = t.dtype();
  return options;
}

Tensor empty_like(const Tensor& t, const FactoryOptions& options) {
  return empty(t.shape(), detail::like(t, options));
}
Tensor zeros_like(const Tensor& t, const FactoryOptions& options) {
  return zeros(t.shape(), detail::like(t, options));
}
Tensor ones_like(const Tensor& t, const FactoryOptions& options) {
  return ones(t.shape(), detail::like(t, options));
}

Tensor full_like(const Tensor& t, const Scalar& value, const FactoryOptions& options) {
  return full_of("full_like", t.shape(), value, t.dtype(), detail::like(t, options));
}

namespace {

Tensor whole_range(std::int64_t start, std::int64_t end, std::int64_t step,
                   const FactoryOptions& options) {
  if (step == 0 || (step > 0 ? end < start : end > start))
    throw ArgumentError(
        str("arange: expected a step that leads from ", start, " to ", end, ", got ", step));
  // Unsigned, because the distance of two int64 always fits in uint64.
  const std::uint64_t distance =
      step > 0 ? static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(start)
               : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(end);
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t n = distance / stride + (distance % stride != 0);
  if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw ShapeError(str("arange: expected at most 2^63 - 1 elements, got ", n));
  const Tensor host = make_tensor({static_cast<std::int64_t>(n)}, DType::int64, Device());
  auto* out = static_cast<std::int64_t*>(host.id()->data());
  for (std::uint64_t i = 0; i < n; ++i)
    out[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                       i * static_cast<std::uint64_t>(step));
  return to_options(host, options, DType::int64);
}

Tensor range(double start, double end, double step, const FactoryOptions& options) {
  for (const double number : {start, end, step})
    if (!std::isfinite(number))
      throw ArgumentError(str("arange: expected finite numbers, got ", number));
  if (step == 0 || (step > 0 ? end < start : end > start))
    throw ArgumentError(
        str("arange: expected a step that leads from ", start, " to ", end, ", got ", step));
  const double distance = end - start,
               n = std::ceil(std::isfinite(distance) ? distance / step : end / step - start / step);
  if (!(n < 0x1p63)) throw ShapeError(str("arange: expected at most 2^63 - 1 elements, got ", n));
  const Tensor host = make_tensor({static_cast<std::int64_t>(n)}, DType::float64, Device());
  auto* out = static_cast<double*>(host.id()->data());
  for (std::int64_t i = 0; i < host.numel(); ++i) out[i] = start + static_cast<double>(i) * step;
  return to_options(host, options, DType::float32);
}

}  // namespace

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
              const FactoryOptions& options) {
  const bool whole = !start.is_floating() && !end.is_floating() && !step.is_floating();
  if (!whole && is_floating(options.dtype.value_or(DType::float32)))
    return range(start.to_double(), end.to_double(), step.to_double(), options);
  for (const Scalar* number : {&start, &end, &step})
    if (!number->is_whole())
      throw DTypeError(
          str("arange: expected whole numbers for ", *options.dtype, ", got ", *number));
  return whole_range(start.to_int64(), end.to_int64(), step.to_int64(), options);
}
Tensor arange(const Scalar& start, const Scalar& end, const FactoryOptions& options) {
  return arange(start, end, 1, options);
}
Tensor arange(const Scalar& end, const FactoryOptions& options) {
  return arange(0, end, 1, options);
}

Tensor linspace(double start, double end, std::int64_t steps, const FactoryOptions& options) {
  if (steps < 0) throw ArgumentError(str("linspace: expected steps >= 0, got ", steps));
  const DType dtype = options.dtype.value_or(DType::float32);
  if (!is_floating(dtype))
    throw DTypeError(str("linspace: expected a floating point type, got ", dtype));
  const Tensor host = make_tensor({steps}, DType::float64, Device());
  auto* out = static_cast<double*>(host.id()->data());
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  for (std::int64_t i = 0; i < steps; ++i)
    out[i] = i < steps / 2 || steps == 1 ? start + static_cast<double>(i) * step
                                         : end - static_cast<double>(steps - 1 - i) * step;
  return to_options(host, options, dtype);
}

Tensor logspace(double start, double end, std::int64_t steps, double base,
                const FactoryOptions& options) {
  if (steps < 0) throw ArgumentError(str("logspace: expected steps >= 0, got ", steps));
  const DType dtype = options.dtype.value_or(DType::float32);
  if (!is_floating(dtype))
    throw DTypeError(str("logspace: expected a floating point type, got ", dtype));
  const Tensor host = linspace(start, end, steps, {.device = Device(), .dtype = DType::float64});
  auto* out = static_cast<double*>(host.id()->data());
  for (std::int64_t i = 0; i < steps; ++i) out[i] = std::pow(base, out[i]);
  return to_options(host, options, dtype);
}

Tensor eye(std::int64_t n, const FactoryOptions& options) { return eye(n, n, options); }
Tensor eye(std::int64_t n, std::int64_t m, const FactoryOptions& options) {
  FactoryOptions plain = options;
  plain.requires_grad = false;
  const Tensor t = zeros({n, m}, plain);
  if (const std::int64_t length = std::min(n, m); length > 0)
    ops::copy_values(make_view(t, {length}, {m + 1}, 0), ops::filled({}, 1, t.dtype(), t.device()));
  return ops::finish(t, options);
}

namespace {

/// The memory of the elements of a shape and strides.
Tensor on_memory(void* data, const Shape& shape, const Shape& strides, DType dtype, Device device,
                 std::function<void()> deleter) {
  std::int64_t n = checked_numel("from_blob", shape, size_of(dtype));
  if (!data && n)
    throw ArgumentError(str("from_blob: expected memory for ", n, " elements, got a null pointer"));
  if (const std::uintptr_t over = reinterpret_cast<std::uintptr_t>(data) % size_of(dtype))
    throw ArgumentError(str("from_blob: expected a pointer aligned for ", dtype, ", a multiple of ",
                            size_of(dtype), ", got one that is ", over, " too far"));
  if (n > 0 && strides != contiguous_strides(shape)) {
    if (strides.rank() != shape.rank())
      throw ShapeError(str("from_blob: expected ", shape.rank(), " strides, got ", strides));
    bool ok = true;
    n = 1;
    for (int d = 0; d < shape.rank(); ++d) {
      std::int64_t reach = 0;
      ok = ok && strides[d] >= 0 && !__builtin_mul_overflow(shape[d] - 1, strides[d], &reach) &&
           !__builtin_add_overflow(n, reach, &n);
    }
    if (!ok || n > std::numeric_limits<std::int64_t>::max() / std::int64_t{16})
      throw ShapeError(str("from_blob: expected strides >= 0 that memory can have, got ", strides));
  }
  return make_tensor_on(
      Storage::wrap(data, static_cast<std::size_t>(n) * size_of(dtype), device, std::move(deleter)),
      shape, strides, 0, dtype);
}

}  // namespace

Tensor from_blob(void* data, const Shape& shape, DType dtype, std::function<void()> deleter,
                 Device device) {
  return on_memory(data, shape, contiguous_strides(shape), dtype, device, std::move(deleter));
}

Tensor detail::from_blob(void* data, const Shape& shape, const Shape& strides,
                         std::function<void(void*)> deleter, const TensorOptions& options) {
  std::function<void()> release;
  if (deleter) release = [data, deleter = std::move(deleter)] { deleter(data); };
  const Tensor t =
      on_memory(data, shape, strides, options.dtype(),
                options.has_device() ? options.device() : Device(), std::move(release));
  return options.requires_grad() ? t.requires_grad_() : t;
}
void detail::other_dtype(DType expected, DType got) {
  throw DTypeError(str("from_blob: expected the pointer's own type ", expected, ", got ", got));
}
void detail::ragged(std::int64_t expected, int depth, std::int64_t got) {
  throw ShapeError(str("tensor: expected ", expected, " items at depth ", depth, ", got ", got));
}

}  // namespace braid
