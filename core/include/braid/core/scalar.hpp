#pragma once
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <type_traits>

#include <braid/core/dtype.hpp>

namespace braid {

/// A number used with tensors: the 2 of `x * 2`, `full({3}, 2)` and `clamp(x, 0, 2)`. Converts
/// implicitly from any C++ number and keeps its kind: an integer (exact), a floating-point number,
/// or a bool. The kind decides the dtype of the result (promote below). An unsigned number above
/// 2^63 - 1 becomes floating point.
class Scalar {
 public:
  enum class Kind : std::uint8_t { boolean, integer, floating };
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr Scalar(T value) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      set_floating(static_cast<double>(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      kind_ = Kind::boolean;
      integer_ = value ? 1 : 0;
    } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(std::int64_t)) {
      if (value > static_cast<T>(std::numeric_limits<std::int64_t>::max()))
        set_floating(static_cast<double>(value));
      else integer_ = static_cast<std::int64_t>(value);
    } else {
      integer_ = static_cast<std::int64_t>(value);
    }
  }

  [[nodiscard]] constexpr Kind kind() const noexcept { return kind_; }
  [[nodiscard]] constexpr bool is_floating() const noexcept { return kind_ == Kind::floating; }
  /// True for integers, bools, and floating-point numbers without a fraction that fit in int64.
  [[nodiscard]] constexpr bool is_whole() const noexcept {
    return !is_floating() || detail::is_whole(floating_);
  }
  /// The nearest double.
  [[nodiscard]] constexpr double to_double() const noexcept {
    return is_floating() ? floating_ : static_cast<double>(integer_);
  }
  /// The exact number if is_whole(), else 0.
  [[nodiscard]] constexpr std::int64_t to_int64() const noexcept {
    if (!is_floating()) return integer_;
    return detail::is_whole(floating_) ? static_cast<std::int64_t>(floating_) : 0;
  }
  /// True if to_double() is certain to be exact: floating point, a bool, or |integer| <= 2^53.
  [[nodiscard]] constexpr bool is_exact_double() const noexcept {
    return is_floating() ||
           (integer_ >= -(std::int64_t{1} << 53) && integer_ <= (std::int64_t{1} << 53));
  }
  friend std::ostream& operator<<(std::ostream& out, const Scalar& s);

 private:
  constexpr void set_floating(double value) noexcept {
    kind_ = Kind::floating;
    floating_ = value;
  }
  double floating_ = 0;
  std::int64_t integer_ = 0;
  Kind kind_ = Kind::integer;
};

/// The dtype of an operation on a tensor of dtype `t` and a number (`x + 2`, `clamp(x, 0, 1)`), as
/// in PyTorch. A number never changes a floating-point dtype. With integers and bool, a
/// floating-point number gives float32, even 2.0; an integer turns bool into int64; a bool changes
/// nothing. The whole table is in docs/notes/dtypes.md.
[[nodiscard]] constexpr DType promote(DType t, const Scalar& number) noexcept {
  if (is_floating(t) || number.kind() == Scalar::Kind::boolean) return t;
  if (number.is_floating()) return DType::float32;
  return t == DType::bool_ ? DType::int64 : t;
}
/// The dtype that a factory gives a number: float32, int64 or bool.
[[nodiscard]] constexpr DType dtype_of_number(const Scalar& number) noexcept {
  return promote(DType::bool_, number);
}

}  // namespace braid
