#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <vector>

#include <braid/core/internal/max_rank.hpp>

namespace braid {

/// The sizes of a tensor, or its strides in elements. They are stored inline, not on the heap. A
/// shape prints as `[30, 5]`.
class Shape {
 public:
  constexpr Shape() noexcept = default;
  /// Throws ShapeError for more than kMaxRank sizes. Negative sizes are an error only when a tensor
  /// is made.
  constexpr Shape(std::initializer_list<std::int64_t> sizes) : Shape(sizes.begin(), sizes.size()) {}
  Shape(const std::vector<std::int64_t>& sizes) : Shape(sizes.data(), sizes.size()) {}
  /// One size, so that `zeros(3)` and `x.view(-1)` compile.
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  constexpr Shape(I size) : Shape({static_cast<std::int64_t>(size)}) {}
  explicit constexpr Shape(std::span<const std::int64_t> sizes)
      : Shape(sizes.data(), sizes.size()) {}
  /// Returns `rank` sizes, all equal to `value`.
  static constexpr Shape filled(int rank, std::int64_t value) {
    Shape s;
    for (int i = 0; i < rank; ++i) s.push_back(value);
    return s;
  }

  [[nodiscard]] constexpr int rank() const noexcept { return rank_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return rank_ == 0; }
  /// The size of dim i. A negative i counts from the end, as in Python. Throws IndexError for i
  /// outside [-rank, rank).
  [[nodiscard]] constexpr std::int64_t operator[](std::int64_t i) const { return sizes_[place(i)]; }
  [[nodiscard]] constexpr std::int64_t& operator[](std::int64_t i) { return sizes_[place(i)]; }
  [[nodiscard]] constexpr std::int64_t back() const { return (*this)[-1]; }
  [[nodiscard]] constexpr std::size_t size() const noexcept {
    return static_cast<std::size_t>(rank_);
  }
  [[nodiscard]] constexpr const std::int64_t* data() const noexcept { return sizes_; }
  [[nodiscard]] std::vector<std::int64_t> vec() const { return {begin(), end()}; }
  [[nodiscard]] constexpr const std::int64_t* begin() const noexcept { return sizes_; }
  [[nodiscard]] constexpr const std::int64_t* end() const noexcept { return sizes_ + rank_; }
  [[nodiscard]] constexpr std::span<const std::int64_t> span() const noexcept {
    return {sizes_, static_cast<std::size_t>(rank_)};
  }

  /// Returns the product of the sizes, which is 1 for rank 0. Throws ShapeError if it exceeds
  /// 2^63 - 1.
  [[nodiscard]] constexpr std::int64_t numel() const {
    std::int64_t n = 1;
    bool overflow = false;
    for (int i = 0; i < rank_; ++i) overflow |= __builtin_mul_overflow(n, sizes_[i], &n);
    if (overflow) return product_of_large();
    return n;
  }
  constexpr void push_back(std::int64_t size) {
    if (rank_ == kMaxRank) too_many(kMaxRank + 1);
    sizes_[rank_++] = size;
  }
  /// Inserts a size before position i.
  constexpr void insert(int i, std::int64_t size) {
    push_back(size);
    for (int j = rank_ - 1; j > i; --j) sizes_[j] = sizes_[j - 1];
    sizes_[i] = size;
  }
  constexpr void erase(int i) {
    for (int j = i + 1; j < rank_; ++j) sizes_[j - 1] = sizes_[j];
    --rank_;
  }

  friend constexpr bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.sizes_[i] != b.sizes_[i]) return false;
    return true;
  }
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);

 private:
  constexpr Shape(const std::int64_t* sizes, std::size_t rank) {
    if (rank > kMaxRank) too_many(rank);
    for (std::size_t i = 0; i < rank; ++i) sizes_[i] = sizes[i];
    rank_ = static_cast<int>(rank);
  }
  [[noreturn]] static void too_many(std::size_t rank);
  [[nodiscard]] std::int64_t product_of_large() const;  // 0 if a size is 0, else throws
  [[nodiscard]] constexpr std::int64_t place(std::int64_t i) const {
    return i >= 0 && i < rank_ ? i : place_from_end(i);
  }
  [[nodiscard]] std::int64_t place_from_end(std::int64_t i) const;

  std::int64_t sizes_[kMaxRank] = {};
  int rank_ = 0;
};

/// Returns the strides of a contiguous (row-major) tensor.
[[nodiscard]] constexpr Shape contiguous_strides(const Shape& shape) noexcept {
  Shape strides = shape;
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i] > 1 ? shape[i] : 1;
  }
  return strides;
}

/// Returns the shape that a and b broadcast to, by the rule of PyTorch and NumPy.
///
/// Throws    ShapeError, naming `op`, if there is none
[[nodiscard]] Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

/// Returns the number of elements.
///
/// Throws    ShapeError, naming `op`, for a negative size, or if elements × element size exceeds
///           2^63 - 1 bytes
[[nodiscard]] std::int64_t checked_numel(const char* op, const Shape& shape,
                                         std::size_t element_size);

/// Returns dim, or dim + rank if it is negative.
///
/// Throws    IndexError, naming `op`, for a dim outside [-rank, rank); rank 0 counts as rank 1
[[nodiscard]] int wrap_dim(const char* op, std::int64_t dim, int rank);

}  // namespace braid
