#pragma once
// Draws random arguments for calls from a few bytes; the same bytes give the same arguments.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/tensor.hpp>

namespace braid::fuzz {

using I = std::int64_t;

class Draw {
 public:
  explicit Draw(std::span<const std::uint8_t> bytes) noexcept;

  /// Starts the arguments of a call. Prints its name if show() was called.
  void begin(std::string_view op);
  static void show();
  /// Prints a line if show() was called.
  static void say(std::string_view line);

  [[nodiscard]] std::uint64_t bits() noexcept;
  [[nodiscard]] I below(I n) noexcept {
    return static_cast<I>(bits() % static_cast<std::uint64_t>(n));
  }
  [[nodiscard]] bool one_in(I n) noexcept { return below(n) == 0; }

  // Random arguments.
  /// Usually small, sometimes near a limit of int64 or int32.
  [[nodiscard]] I integer();
  /// Usually a valid count, 1 to 4.
  [[nodiscard]] I count();
  [[nodiscard]] I dim();
  /// Includes infinities, NaN, and numbers that overflow float.
  [[nodiscard]] double real();
  [[nodiscard]] bool flag();
  [[nodiscard]] DType dtype();
  /// Sizes: usually small, sometimes negative or huge.
  [[nodiscard]] Shape shape();
  /// Dims; sometimes one is out of range or repeated.
  [[nodiscard]] Shape dims();
  /// Any value of an enumeration whose last value is `last`.
  template <class E> [[nodiscard]] E any_of(E last) {
    return static_cast<E>(below(static_cast<I>(last) + 1));
  }

  // Tensors of at most a few thousand elements, in any layout, sometimes undefined.
  [[nodiscard]] Tensor tensor();
  /// Usually of this rank.
  [[nodiscard]] Tensor of_rank(I rank);
  /// Of exactly this shape, in any layout.
  [[nodiscard]] Tensor of_shape(const Shape& shape, DType dtype);
  /// Undefined, or of exactly this shape and usually the last tensor's dtype.
  [[nodiscard]] Tensor maybe(const Shape& shape);
  /// Usually matches the last tensor: the same dtype, and the same shape or one that broadcasts to
  /// it.
  [[nodiscard]] Tensor like();
  /// Returns [n], where n is the last size of the tensor drawn last.
  [[nodiscard]] Shape last_size() const { return last_.empty() ? Shape{} : Shape{last_.back()}; }
  /// Small indices, some of them out of range.
  [[nodiscard]] Tensor index();
  [[nodiscard]] Tensor index(const Shape& shape);
  [[nodiscard]] Tensor mask();
  /// -1 and 1, one for each row of the last tensor.
  [[nodiscard]] Tensor signs();
  [[nodiscard]] std::vector<Tensor> tensors();
  /// A view of a size that no memory can hold, for ops that only make views of it.
  [[nodiscard]] Tensor huge_view();

 private:
  [[nodiscard]] Shape small_shape(I rank);
  [[nodiscard]] Tensor filled(const Shape& shape, DType dtype);
  Tensor told(Tensor t);
  template <class T> T told(T value, const char* what);

  std::uint64_t state_;
  Shape last_{2, 3};
  DType last_dtype_ = DType::float32;
};

}  // namespace braid::fuzz
