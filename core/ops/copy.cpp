// Copies between layouts, dtypes and devices, and the way out to host values.
#include <algorithm>
#include <cmath>

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

/// The same bytes on another device; x is dense.
Tensor transfer(const Tensor& x, Device device) {
  Tensor y = make_tensor(x.shape(), x.dtype(), device);
  const std::size_t bytes = static_cast<std::size_t>(x.numel()) * size_of(x.dtype());
  if (bytes == 0) return y;
  // The backend that is not the plain host's knows how to reach both sides.
  const Device by = device.type() == DeviceType::cpu ? x.device() : device;
  device_context(by).backend->copy({y.id()->data(), device, x.id()->data(), x.device(), bytes}, current_stream(by));
  return y;
}

/// Without history. Converts where fewer bytes travel.
Tensor converted(const Tensor& x, Device device, DType dtype) {
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
  y = transfer(y, device);
  if (widens) convert();
  return y;
}

}  // namespace
}  // namespace ops

Tensor Tensor::to(Device device, std::optional<DType> dtype, bool copy) const {
  const TensorImpl& t = detail::defined(impl_);
  const DType type = dtype.value_or(t.dtype);
  if (!copy && device == t.device && type == t.dtype) return *this;
  (void)device_context(device);
  Tensor y = ops::converted(*this, device, type);
  if (!is_floating(type) || !is_floating(t.dtype) || !needs_grad({*this})) return y;
  return record("to", {*this}, y, [from = t.device, as = t.dtype](const Tensor& dy) -> Grads { return {dy.to(from, as)}; });
}

Tensor Tensor::clone() const { return to(device(), dtype(), true); }
Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

double Tensor::item_double() const {
  if (numel() != 1) throw ShapeError(str("item: expected a tensor with one element, got shape ", shape()));
  const NoGrad guard;
  const Tensor host = to(Device(), DType::float64);
  synchronize(Device());
  return *static_cast<const double*>(host.id()->data());
}

std::int64_t Tensor::item_int64() const {
  if (numel() != 1) throw ShapeError(str("item: expected a tensor with one element, got shape ", shape()));
  const NoGrad guard;
  return *static_cast<const std::int64_t*>(to(Device(), DType::int64).id()->data());
}

template <class T>
std::vector<T> Tensor::to_vector() const {
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

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol) {
  ops::check_device("allclose", a, b);
  if (a.shape() != b.shape()) return false;
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i] && !(std::isfinite(x[i]) && std::isfinite(y[i]) && std::abs(x[i] - y[i]) <= atol + rtol * std::abs(y[i]))) return false;
  return true;
}

bool equal(const Tensor& a, const Tensor& b) {
  ops::check_device("equal", a, b);
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  if (is_floating(a.dtype())) {
    const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
    return x == y;
  }
  return a.to_vector<std::int64_t>() == b.to_vector<std::int64_t>();
}

}  // namespace braid
