#pragma once
#include <compare>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <type_traits>
#include <utility>

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
  /// Converts to a C++ number, as `float x = scalar;` does too. An integer type takes the number
  /// without its fraction.
  ///
  /// Throws    DTypeError for a number outside the range of T (NaN is in no range of integers)
  template <class T>
    requires std::is_arithmetic_v<T>
  [[nodiscard]] constexpr T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      return is_floating() ? floating_ != 0 : integer_ != 0;
    } else if constexpr (std::is_floating_point_v<T>) {
      const double x = to_double();
      constexpr double largest = static_cast<double>(
          std::numeric_limits<std::conditional_t<sizeof(T) < sizeof(double), T, double>>::max());
      if ((x > largest || x < -largest) && x - x == 0) out_of_range();
      return static_cast<T>(x);
    } else {
      if (is_floating()) {
        // the whole numbers of T lie in [low, high)
        constexpr double high = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
        constexpr double low = std::is_signed_v<T> ? -high : 0;
        if (!(floating_ > low - 1 || floating_ == low) || !(floating_ < high)) out_of_range();
        return static_cast<T>(floating_);
      }
      if (!std::in_range<T>(integer_)) out_of_range();
      return static_cast<T>(integer_);
    }
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr operator T() const {
    return to<T>();
  }
  // LibTorch's names.
  [[nodiscard]] double toDouble() const { return to<double>(); }
  [[nodiscard]] float toFloat() const { return to<float>(); }
  [[nodiscard]] std::int64_t toLong() const { return to<std::int64_t>(); }
  [[nodiscard]] int toInt() const { return to<int>(); }
  [[nodiscard]] bool toBool() const { return to<bool>(); }
  [[nodiscard]] constexpr bool isFloatingPoint() const noexcept { return is_floating(); }
  [[nodiscard]] constexpr bool isBoolean() const noexcept { return kind_ == Kind::boolean; }
  [[nodiscard]] constexpr bool isIntegral(bool include_bool) const noexcept {
    return kind_ == Kind::integer || (include_bool && isBoolean());
  }
  /// Compares with a C++ number, exactly if both are integers.
  template <class T>
    requires std::is_arithmetic_v<T>
  friend constexpr bool operator==(const Scalar& a, T b) noexcept {
    return a.compare(b) == 0;
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  friend constexpr std::partial_ordering operator<=>(const Scalar& a, T b) noexcept {
    return a.compare(b);
  }
  friend std::ostream& operator<<(std::ostream& out, const Scalar& s);

 private:
  [[noreturn]] void out_of_range() const;
  [[nodiscard]] constexpr std::partial_ordering compare(const Scalar& b) const noexcept {
    if (is_floating() || b.is_floating()) return to_double() <=> b.to_double();
    return integer_ <=> b.integer_;
  }
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
