// Device names, dtypes and shapes as text; shape arithmetic.
#include <charconv>
#include <ostream>

#include <braid/core/dtype.hpp>
#include <braid/core/error.hpp>
#include <braid/core/int_list.hpp>
#include <braid/core/scalar.hpp>
#include <braid/core/shape.hpp>

namespace braid {

std::string_view Device::named(const char* name) {
  if (name == nullptr)
    throw DeviceError(
        "device: expected cpu, cpu:<index>, cuda or cuda:<index>, got a null pointer");
  return name;
}

Device::Device(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view type = name.substr(0, colon);
  bool ok = type == "cpu" || type == "cuda";
  type_ = type == "cuda" ? DeviceType::cuda : DeviceType::cpu;
  if (colon != name.npos) {
    const std::string_view digits = name.substr(colon + 1);
    int index = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    ok = ok && error == std::errc() && end == digits.data() + digits.size() && index >= 0 &&
         index < 1024 && digits.front() != '-' && (digits.size() == 1 || digits.front() != '0');
    index_ = static_cast<std::int16_t>(index);
  }
  if (!ok)
    throw DeviceError(braid::str("device: expected cpu, cpu:<index>, cuda or cuda:<index>, got '",
                                 name.substr(0, 64), "'"));
}

std::ostream& operator<<(std::ostream& out, const Device& d) {
  return out << (d.type() == DeviceType::cuda ? "cuda:" : "cpu:") << d.index();
}

std::string Device::str() const { return braid::str(*this); }

std::string_view name_of(DType t) noexcept {
  constexpr std::string_view names[kDTypeCount] = {"bool",    "uint8",    "int32",   "int64",
                                                   "float16", "bfloat16", "float32", "float64"};
  return names[static_cast<int>(t)];
}
std::ostream& operator<<(std::ostream& out, DType t) { return out << name_of(t); }

void Shape::too_many(std::size_t rank) {
  throw ShapeError(str("shape: expected at most ", kMaxRank, " dimensions, got ", rank));
}

std::int64_t Shape::place_from_end(std::int64_t i) const {
  if (i < 0 && i >= -rank_) return i + rank_;
  if (rank_ == 0)
    throw IndexError(str("shape: expected an index for a shape with sizes, got ", i, " for []"));
  throw IndexError(
      str("shape: expected an index in [", -rank_, ", ", rank_ - 1, "] for ", *this, ", got ", i));
}

std::int64_t Shape::product_of_large() const {
  for (const std::int64_t size : *this)
    if (size == 0) return 0;
  throw ShapeError(str("shape: expected at most 2^63 - 1 elements, got ", *this));
}

std::ostream& operator<<(std::ostream& out, const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::boolean: return out << (s.to_int64() != 0 ? "true" : "false");
    case Scalar::Kind::integer: return out << s.to_int64();
    default: return out << s.to_double();
  }
}

void Scalar::out_of_range() const {
  throw DTypeError(str("Scalar: expected a number in the range of the type, got ", *this));
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int i = 0; i < shape.rank(); ++i) out << (i ? ", " : "") << shape[i];
  return out << ']';
}

std::ostream& operator<<(std::ostream& out, const IntList& list) {
  out << '[';
  for (std::size_t i = 0; i < list.size(); ++i) out << (i ? ", " : "") << list[i];
  return out << ']';
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  Shape result = a.rank() >= b.rank() ? a : b;
  const Shape& other = a.rank() >= b.rank() ? b : a;
  for (int i = 1; i <= other.rank(); ++i) {
    std::int64_t& size = result[result.rank() - i];
    const std::int64_t o = other[other.rank() - i];
    if (size == o || o == 1) continue;
    if (size != 1)
      throw ShapeError(
          str(op, ": expected shapes that broadcast (sizes equal or 1, from the right), got ", a,
              " and ", b));
    size = o;
  }
  return result;
}

std::int64_t checked_numel(const char* op, const Shape& shape, std::size_t element_size) {
  // Checks all sizes, so that a size of 0 does not hide an overflow of the others.
  std::int64_t product = 1;
  bool empty = false, overflow = false;
  for (const std::int64_t size : shape) {
    if (size < 0) throw ShapeError(str(op, ": expected sizes >= 0, got ", shape));
    if (size == 0) empty = true;
    else overflow |= __builtin_mul_overflow(product, size, &product);
  }
  std::int64_t bytes = 0;
  overflow |= __builtin_mul_overflow(product, static_cast<std::int64_t>(element_size), &bytes);
  if (overflow)
    throw ShapeError(str(op, ": expected at most 2^63 - 1 bytes, got ", shape, " elements of ",
                         element_size, " bytes"));
  return empty ? 0 : product;
}

int wrap_dim(const char* op, std::int64_t dim, int rank) {
  const std::int64_t r = rank > 0 ? rank : 1;
  if (dim < -r || dim >= r)
    throw IndexError(str(op, ": expected a dim in [", -r, ", ", r - 1, "], got ", dim));
  return static_cast<int>(dim < 0 ? dim + r : dim);
}

}  // namespace braid
