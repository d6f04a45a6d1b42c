// Copies between layouts, dtypes and devices, and reads of values on the host.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <braid/core/internal/kernel_args/elementwise.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "common.hpp"

namespace braid {
namespace ops {

void copy_values(const Tensor& dst, const Tensor& src) {
  if (dst.numel() == 0) return;
  CopyArgs args;
  args.to = dst.dtype();
  args.from = src.dtype();
  args.out = dst.id()->data();
  args.x = src.id()->data();
  fill_loop(args.loop, dst.shape(), {dst.id(), src.id()});
  launch("copy", dst.device(), &KernelTable::copy, args);
}

namespace {

/// Copies x into new memory of another device. Requires a contiguous x.
Tensor transfer_on(Stream& stream, const Tensor& x, Device device, bool non_blocking) {
  Tensor y = make_tensor(x.shape(), x.dtype(), device);
  const std::size_t bytes = static_cast<std::size_t>(x.numel()) * size_of(x.dtype());
  if (bytes != 0)
    device_context(stream.device())
        .backend->copy({y.id()->data(), device, x.id()->data(), x.device(), bytes, non_blocking},
                       stream);
  return y;
}

/// The same on the current stream, whose later work sees the values. A copy from the host runs on
/// the device's upload stream, into memory of that stream, so it waits for no work of the device.
Tensor transfer(const Tensor& x, Device device, bool non_blocking) {
  // A backend other than the CPU's can access the memory of both sides.
  const Device by = device.type() == DeviceType::cpu ? x.device() : device;
  Stream& current = current_stream(by);
  const std::shared_ptr<Stream> uploads =
      x.device().is_cpu() && x.numel() != 0 && detail::StepCapture::current() == nullptr
          ? device_context(by).backend->upload_stream()
          : nullptr;
  if (uploads == nullptr) return transfer_on(current, x, device, non_blocking);
  Tensor y;
  {
    const StreamGuard guard(uploads);
    y = transfer_on(*uploads, x, device, non_blocking);
  }
  current.wait_for(*uploads);
  record_stream(y, current);
  return y;
}

/// Not recorded. Converts before or after the transfer, so that fewer bytes are transferred.
Tensor converted(const Tensor& x, Device device, DType dtype, bool non_blocking) {
  Tensor y = x;
  const bool widens = size_of(dtype) > size_of(x.dtype());
  const auto convert = [&] {
    if (y.dtype() == dtype && y.is_contiguous()) return;
    Tensor z = make_tensor(y.shape(), dtype, y.device());
    copy_values(z, y);
    y = z;
  };
  if (device == x.device()) {
    Tensor z = make_tensor(x.shape(), dtype, device);
    copy_values(z, x);
    return z;
  }
  if (!widens) convert();
  if (!y.is_contiguous()) {
    Tensor z = make_tensor(y.shape(), y.dtype(), y.device());
    copy_values(z, y);
    y = z;
  }
  y = transfer(y, device, non_blocking);
  if (widens) convert();
  return y;
}

}  // namespace

Tensor make_pinned(const Shape& shape, DType dtype, Device device) {
  const std::int64_t n = checked_numel("tensor", shape, size_of(dtype));
  return make_tensor_on(
      Storage::allocate_pinned(static_cast<std::size_t>(n) * size_of(dtype), device), shape,
      contiguous_strides(shape), 0, dtype);
}

}  // namespace ops

Tensor Tensor::to(Device device, std::optional<DType> dtype, bool non_blocking, bool copy) const {
  const TensorImpl& t = detail::defined(impl_);
  const DType type = dtype.value_or(t.dtype);
  if (!copy && device == t.device && type == t.dtype) return *this;
  (void)device_context(device);
  Tensor y = ops::converted(*this, device, type, non_blocking);
  if (!is_floating(type) || !is_floating(t.dtype) || !needs_grad({*this})) return y;
  return record("to", {*this}, y, [from = t.device, as = t.dtype](const Tensor& dy) -> Grads {
    return {dy.to(from, as)};
  });
}

Tensor Tensor::pin_memory() const {
  const TensorImpl& t = detail::defined(impl_);
  if (t.storage->is_pinned()) return *this;
  detail::StepCapture::refuse("pin_memory", "a captured step without copies on the host, got one");
  Tensor y = ops::make_pinned(t.shape, t.dtype, t.device);
  ops::copy_values(y, *this);
  if (!is_floating(t.dtype) || !needs_grad({*this})) return y;
  return record("pin_memory", {*this}, y, [](const Tensor& dy) -> Grads { return {dy}; });
}

Tensor Tensor::clone() const { return to(device(), dtype(), true); }
Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

namespace {

/// Copies the one element of x to the host. Allocates no device memory, so it works even when none
/// is left.
struct OneElement {
  explicit OneElement(const Tensor& x) {
    detail::StepCapture::refuse("item", detail::kNoHostReads);
    const TensorImpl& t = detail::defined(x.impl());
    if (t.numel != 1)
      throw ShapeError(str("item: expected a tensor with one element, got shape ", t.shape));
    Stream& stream = current_stream(t.device);
    device_context(t.device).backend->copy({bytes, Device(), t.data(), t.device, size_of(t.dtype)},
                                           stream);
    stream.synchronize();
  }
  template <class T> [[nodiscard]] T as() const noexcept {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  unsigned char bytes[8] = {};
};

}  // namespace

Tensor::operator bool() const {
  if (numel() != 1)
    throw ShapeError(str("operator bool: expected a tensor with one element, got shape ", shape(),
                         "; use all(x) or any(x)"));
  return item<bool>();
}

double Tensor::item_double() const {
  const OneElement e(*this);
  switch (dtype()) {
    case DType::bool_:
    case DType::uint8: return e.as<std::uint8_t>();
    case DType::int32: return e.as<std::int32_t>();
    case DType::int64: return static_cast<double>(e.as<std::int64_t>());
    case DType::float16: return static_cast<float>(e.as<float16>());
    case DType::bfloat16: return static_cast<float>(e.as<bfloat16>());
    case DType::float32: return e.as<float>();
    default: return e.as<double>();
  }
}

std::int64_t Tensor::item_int64() const {
  if (dtype() == DType::int64) return OneElement(*this).as<std::int64_t>();
  return static_cast<std::int64_t>(item_double());  // exact for all other integer types
}

template <Element T> std::vector<T> Tensor::to_vector() const {
  detail::StepCapture::refuse("to_vector", detail::kNoHostReads);
  const NoGrad guard;
  const Tensor host = to(Device(), dtype_of<T>).contiguous();
  const auto* p = static_cast<const T*>(host.id()->data());
  return std::vector<T>(p, p + host.numel());
}
template std::vector<bool> Tensor::to_vector() const;
template std::vector<std::uint8_t> Tensor::to_vector() const;
template std::vector<std::int32_t> Tensor::to_vector() const;
template std::vector<std::int64_t> Tensor::to_vector() const;
template std::vector<float16> Tensor::to_vector() const;
template std::vector<bfloat16> Tensor::to_vector() const;
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;

}  // namespace braid
