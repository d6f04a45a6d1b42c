#pragma once
// Random arguments for calls, all of them from a few bytes: the same bytes draw the same arguments.
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

  /// What follows is of this call, and is told where show() was asked for.
  void begin(std::string_view op);
  static void show();
  /// A line for those who asked.
  static void say(std::string_view line);

  [[nodiscard]] std::uint64_t bits() noexcept;
  [[nodiscard]] I below(I n) noexcept {
    return static_cast<I>(bits() % static_cast<std::uint64_t>(n));
  }
  [[nodiscard]] bool one_in(I n) noexcept { return below(n) == 0; }

  // Arguments.
  /// Mostly small, at times at the end of what an int64 holds, or of what an int32 does.
  [[nodiscard]] I integer();
  /// One that is right most of the time: 1 to 4.
  [[nodiscard]] I count();
  [[nodiscard]] I dim();
  /// Infinities, NaN, and what overflows float too.
  [[nodiscard]] double real();
  [[nodiscard]] bool flag();
  [[nodiscard]] DType dtype();
  /// Sizes: mostly small, at times negative or huge.
  [[nodiscard]] Shape shape();
  /// Dims, at times a wrong one or one twice.
  [[nodiscard]] Shape dims();
  /// Any element of an enumeration, whose last is `last`.
  template <class E> [[nodiscard]] E any_of(E last) {
    return static_cast<E>(below(static_cast<I>(last) + 1));
  }

  // Tensors of at most a few thousand elements, of any layout, at times undefined.
  [[nodiscard]] Tensor tensor();
  /// Of this rank most of the time.
  [[nodiscard]] Tensor of_rank(I rank);
  /// Of exactly this shape, in any layout.
  [[nodiscard]] Tensor of_shape(const Shape& shape, DType dtype);
  /// Of exactly this shape, floating point, or undefined.
  [[nodiscard]] Tensor maybe(const Shape& shape);
  /// Fits the last one most of the time: of its type, of its shape or one that broadcasts with it.
  [[nodiscard]] Tensor like();
  /// [n], the last size of the tensor that was drawn last.
  [[nodiscard]] Shape last_size() const { return last_.empty() ? Shape{} : Shape{last_.back()}; }
  /// Small numbers, some of them out of range.
  [[nodiscard]] Tensor index();
  [[nodiscard]] Tensor index(const Shape& shape);
  [[nodiscard]] Tensor mask();
  /// -1 and 1, one for each row of the last tensor.
  [[nodiscard]] Tensor signs();
  [[nodiscard]] std::vector<Tensor> tensors();
  /// A view of a size that no memory has, for ops that only make views of it.
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
