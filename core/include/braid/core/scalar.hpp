#pragma once
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <type_traits>

#include <braid/core/dtype.hpp>

namespace braid {

/// A number beside tensors: the 2 of `x * 2`, `full({3}, 2)` and `clamp(x, 0, 2)`. It is made of
/// any C++ number without a cast and keeps what was written: an integer to its last digit, a
/// floating point number, or a truth value. Which of the three it is decides dtypes (promote
/// below). An unsigned number above 2^63 - 1 becomes a floating one.
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
  /// True for integers, truth values, and floating ones without a fraction that fit in int64.
  [[nodiscard]] constexpr bool is_whole() const noexcept {
    return !is_floating() || detail::is_whole(floating_);
  }
  /// The nearest double.
  [[nodiscard]] constexpr double to_double() const noexcept {
    return is_floating() ? floating_ : static_cast<double>(integer_);
  }
  /// The exact number if it is whole, else 0.
  [[nodiscard]] constexpr std::int64_t to_int64() const noexcept {
    if (!is_floating()) return integer_;
    return detail::is_whole(floating_) ? static_cast<std::int64_t>(floating_) : 0;
  }
  /// True if a double holds the number.
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

/// The type of a tensor beside a number (`x + 2`, `clamp(x, 0, 1)`), PyTorch's: a number never
/// changes a floating type. Beside integers and bool a floating number makes float32, also 2.0; an
/// integer makes bool int64, and a truth value changes nothing. The whole table is in
/// docs/notes/dtypes.md.
[[nodiscard]] constexpr DType promote(DType t, const Scalar& number) noexcept {
  if (is_floating(t) || number.kind() == Scalar::Kind::boolean) return t;
  if (number.is_floating()) return DType::float32;
  return t == DType::bool_ ? DType::int64 : t;
}
/// The type that a factory gives a number: float32, int64 or bool.
[[nodiscard]] constexpr DType dtype_of_number(const Scalar& number) noexcept {
  return promote(DType::bool_, number);
}

}  // namespace braid
