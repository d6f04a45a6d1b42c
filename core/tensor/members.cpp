// The members of Tensor that are functions of the same name (internal/members.def), and LibTorch's
// names for properties and conversions.
#include <iostream>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/activation.hpp>
#include <braid/core/ops/aliases.hpp>
#include <braid/core/ops/composed.hpp>
#include <braid/core/ops/diagonal.hpp>
#include <braid/core/ops/gather.hpp>
#include <braid/core/ops/index.hpp>
#include <braid/core/ops/masks.hpp>
#include <braid/core/ops/parts.hpp>
#include <braid/core/ops/rearrange.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/scan.hpp>
#include <braid/core/ops/softmax.hpp>
#include <braid/core/ops/statistics.hpp>
#include <braid/core/random.hpp>

#include "ops/change.hpp"

namespace braid {

namespace {
DType common_type(const Tensor& a, const Tensor& b) { return promote(a.dtype(), b.dtype()); }
DType common_type(const Tensor& a, const Scalar& b) { return promote(a.dtype(), b); }
/// Records y, a step function of the operands. Its gradient is 0 everywhere, also where that of
/// the quotient is infinite.
Tensor recorded_step(const Tensor& y, const Tensor& a, const Tensor& b) {
  if (!needs_grad({a, b})) return y;
  const auto zeros_of = [](const Tensor& t) {  // without keeping t's memory
    return [shape = t.shape(), dtype = t.dtype(), device = t.device()] {
      return zeros(shape, {.device = device, .dtype = dtype});
    };
  };
  return record("div", {a, b}, y,
                [of_a = zeros_of(a), of_b = zeros_of(b.defined() ? b : a)](const Tensor&,
                                                                           Needs needs) -> Grads {
                  return {needs[0] ? of_a() : Tensor(), needs[1] ? of_b() : Tensor()};
                });
}
Tensor recorded_step(const Tensor& y, const Tensor& a, const Scalar&) {
  return recorded_step(y, a, Tensor());
}
template <class B> Tensor divided(const Tensor& a, const B& b, std::string_view rounding_mode) {
  if (rounding_mode == "floor") return floor_divide(a, b);
  if (rounding_mode != "trunc")
    throw ArgumentError(
        str("div: expected the rounding mode \"floor\" or \"trunc\", got \"", rounding_mode, '"'));
  const DType dtype = common_type(a, b);
  if (is_floating(dtype)) {
    Tensor y;
    {
      const NoGrad guard;
      y = trunc(a / b);
    }
    return recorded_step(y, a, b);
  }
  const Tensor x = a.to(dtype);
  return floor_divide(x - fmod(x, b), b);
}
}  // namespace
Tensor div(const Tensor& a, const Tensor& b, std::string_view rounding_mode) {
  return divided(a, b, rounding_mode);
}
Tensor div(const Tensor& a, const Scalar& b, std::string_view rounding_mode) {
  return divided(a, b, rounding_mode);
}

#define BRAID_MEMBER(Result, name, parameters, arguments) \
  Result Tensor::name parameters const {                  \
    const Tensor& self = *this;                           \
    return braid::name arguments;                         \
  }
#define BRAID_IN_PLACE(name, parameters, arguments)                                \
  const Tensor& Tensor::name##_ parameters const& {                                \
    return ops::change(#name "_", *this,                                           \
                       [&](const Tensor& self) { return braid::name arguments; }); \
  }                                                                                \
  Tensor Tensor::name##_ parameters const&& {                                      \
    return ops::change(#name "_", kept(#name "_"),                                 \
                       [&](const Tensor& self) { return braid::name arguments; }); \
  }
#include <braid/core/internal/members.def>

#define BRAID_ASSIGNMENT(op, name)                                                          \
  const Tensor& Tensor::operator op(const Tensor& other) const& { return name(other); }     \
  Tensor Tensor::operator op(const Tensor& other) const&& { return kept(#op).name(other); } \
  const Tensor& Tensor::operator op(const Scalar& number) const& { return name(number); }   \
  Tensor Tensor::operator op(const Scalar& number) const&& { return kept(#op).name(number); }
BRAID_ASSIGNMENT(+=, add_)
BRAID_ASSIGNMENT(-=, sub_)
BRAID_ASSIGNMENT(*=, mul_)
BRAID_ASSIGNMENT(/=, div_)
BRAID_ASSIGNMENT(%=, remainder_)
BRAID_ASSIGNMENT(&=, bitwise_and_)
BRAID_ASSIGNMENT(|=, bitwise_or_)
BRAID_ASSIGNMENT(^=, bitwise_xor_)
BRAID_ASSIGNMENT(<<=, bitwise_left_shift_)
BRAID_ASSIGNMENT(>>=, bitwise_right_shift_)
#undef BRAID_ASSIGNMENT

Tensor Tensor::where(const Tensor& condition, const Tensor& other) const {
  return braid::where(condition, *this, other);
}
Tensor Tensor::where(const Tensor& condition, const Scalar& other) const {
  return braid::where(condition, *this, other);
}
Tensor Tensor::variance(const IntList& dims, double correction, bool keepdim) const {
  return detail::var(*this, dims, correction, keepdim);
}
Tensor Tensor::deviation(const IntList& dims, double correction, bool keepdim) const {
  return detail::std(*this, dims, correction, keepdim);
}

const Shape& Tensor::sizes() const { return shape(); }
const Shape& Tensor::size() const { return shape(); }
int Tensor::ndim() const { return dim(); }
int Tensor::ndimension() const { return dim(); }
DType Tensor::scalar_type() const { return dtype(); }
TensorOptions Tensor::options() const { return TensorOptions(dtype()).device(device()); }
std::int64_t Tensor::element_size() const { return static_cast<std::int64_t>(size_of(dtype())); }
std::int64_t Tensor::itemsize() const { return element_size(); }
std::int64_t Tensor::nbytes() const { return numel() * element_size(); }
std::uint64_t Tensor::_version() const { return version(); }
bool Tensor::is_cpu() const { return device().is_cpu(); }
bool Tensor::is_cuda() const { return device().is_cuda(); }
int Tensor::get_device() const { return is_cpu() ? -1 : device().index(); }
bool Tensor::is_floating_point() const { return is_floating(dtype()); }
bool Tensor::is_complex() const {
  (void)detail::defined(impl_);
  return false;
}
bool Tensor::is_signed() const { return dtype() > DType::uint8; }

std::int64_t Tensor::stride(std::int64_t dim) const {
  const Shape& s = strides();
  if (s.rank() == 0)
    throw IndexError(
        str("stride: expected a tensor with dimensions, got a scalar (dim ", dim, ")"));
  return s[wrap_dim("stride", dim, s.rank())];
}

Tensor Tensor::to(DeviceType device, std::optional<DType> dtype, bool copy) const {
  return to(Device(device), dtype, copy);
}
Tensor Tensor::to(Device device, bool non_blocking) const {
  return to(device, std::nullopt, non_blocking, false);
}
Tensor Tensor::to(DeviceType device, bool non_blocking) const {
  return to(Device(device), non_blocking);
}
Tensor Tensor::to(const TensorOptions& options, bool non_blocking) const {
  return to(options.has_device() ? options.device() : device(),
            options.has_dtype() ? options.dtype() : dtype(), non_blocking, false);
}
Tensor Tensor::to(const Tensor& other, bool non_blocking) const {
  return to(other.device(), other.dtype(), non_blocking, false);
}
Tensor Tensor::type_as(const Tensor& other) const { return to(other); }
Tensor Tensor::to(DType dtype, bool /*non_blocking*/, bool copy) const { return to(dtype, copy); }
Tensor Tensor::to(Device device, std::optional<DType> dtype, bool copy) const {
  return to(device, dtype, false, copy);
}
bool Tensor::is_pinned() const { return storage()->is_pinned(); }
detail::MutableGrad Tensor::mutable_grad() const { return detail::MutableGrad(*this); }
Tensor Tensor::toType(DType dtype) const { return to(dtype); }
Tensor Tensor::cpu() const { return to(Device()); }
Tensor Tensor::cuda(int index) const { return to(Device(DeviceType::cuda, index)); }

Tensor Tensor::T() const {
  Shape dims;
  for (int d = dim() - 1; d >= 0; --d) dims.push_back(d);
  return permute(dims);
}
Tensor Tensor::mT() const {
  if (dim() < 2) throw ShapeError(str("mT: expected at least 2 dimensions, got ", shape()));
  return transpose(-2, -1);
}
Tensor Tensor::mH() const { return mT(); }
Tensor Tensor::matrix_H() const { return H(); }
Tensor Tensor::numpy_T() const { return T(); }
Tensor Tensor::H() const {
  if (dim() != 2) throw ShapeError(str("H: expected a matrix, got ", shape()));
  return transpose(0, 1);
}

Tensor Tensor::trace() const {
  if (dim() != 2) throw ShapeError(str("trace: expected a matrix, got ", shape()));
  return braid::sum(braid::diagonal(*this));
}

std::tuple<Tensor, Tensor> Tensor::aminmax(const std::optional<std::int64_t>& dim,
                                           bool keepdim) const {
  return braid::aminmax(*this, dim, keepdim);
}

Tensor Tensor::alias() const {
  const Tensor y = make_view(*this, shape(), strides(), storage_offset());
  if (!needs_grad({*this})) return y;
  return record("alias", {*this}, y, [](const Tensor& dy) -> Grads { return {dy}; });
}

std::uint32_t Tensor::output_nr() const {
  return grad_fn() == nullptr ? 0 : detail::defined(impl_).output_nr;
}
bool Tensor::is_set_to(const Tensor& other) const {
  return storage() == other.storage() && storage_offset() == other.storage_offset() &&
         shape() == other.shape() && strides() == other.strides();
}

void Tensor::print() const {
  if (defined()) std::cerr << '[' << dtype() << ' ' << shape() << ' ' << device() << "]\n";
  else std::cerr << "[undefined]\n";
}

Scalar Tensor::item() const {
  if (is_floating(dtype())) return item_double();
  if (dtype() == DType::bool_) return item<bool>();
  return item_int64();
}

}  // namespace braid
