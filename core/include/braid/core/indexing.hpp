#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include <braid/core/tensor.hpp>

// What Tensor::index and index_put_ take, spelt as in LibTorch, and the rows of a tensor as a
// range.
//
//     using namespace braid::indexing;
//     x.index({Slice(1, None, 2), "...", 0});  // Python's x[1::2, ..., 0]
namespace braid {

namespace indexing {

/// A new dim of size 1. In a Slice: no bound.
inline constexpr std::nullopt_t None = std::nullopt;
/// As many whole dims as the other indices leave.
struct EllipsisIndexType {};
inline constexpr EllipsisIndexType Ellipsis;

/// The elements start, start + step, … before stop, as in Python: bounds are clamped, and negative
/// ones count from the end. A negative step goes backwards, from the end if there is no start.
class Slice {
 public:
  constexpr Slice(std::optional<std::int64_t> start = {}, std::optional<std::int64_t> stop = {},
                  std::optional<std::int64_t> step = {}) noexcept
      : start_(start), stop_(stop), step_(step) {}
  [[nodiscard]] constexpr std::optional<std::int64_t> start() const noexcept { return start_; }
  [[nodiscard]] constexpr std::optional<std::int64_t> stop() const noexcept { return stop_; }
  [[nodiscard]] constexpr std::int64_t step() const noexcept { return step_.value_or(1); }

 private:
  std::optional<std::int64_t> start_, stop_, step_;
};

/// One of the things in the brackets of `x[…]`: an integer, a Slice, None, an Ellipsis or "...", a
/// bool, or a tensor.
class TensorIndex {
 public:
  TensorIndex(std::nullopt_t) noexcept : kind_(Kind::none) {}
  TensorIndex(EllipsisIndexType) noexcept : kind_(Kind::ellipsis) {}
  /// Throws ArgumentError for a text other than "...".
  TensorIndex(const char* dots);
  TensorIndex(const Slice& slice) noexcept : kind_(Kind::slice), slice_(slice) {}
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  TensorIndex(I i) noexcept : kind_(Kind::integer), integer_(static_cast<std::int64_t>(i)) {}
  template <std::same_as<bool> B>
  TensorIndex(B b) noexcept : kind_(Kind::boolean), integer_(b ? 1 : 0) {}
  TensorIndex(Tensor t) noexcept : kind_(Kind::tensor), tensor_(std::move(t)) {}

  [[nodiscard]] bool is_none() const noexcept { return kind_ == Kind::none; }
  [[nodiscard]] bool is_ellipsis() const noexcept { return kind_ == Kind::ellipsis; }
  [[nodiscard]] bool is_slice() const noexcept { return kind_ == Kind::slice; }
  [[nodiscard]] bool is_integer() const noexcept { return kind_ == Kind::integer; }
  [[nodiscard]] bool is_boolean() const noexcept { return kind_ == Kind::boolean; }
  [[nodiscard]] bool is_tensor() const noexcept { return kind_ == Kind::tensor; }
  // what it is made from; a default value for another kind
  [[nodiscard]] const Slice& slice() const noexcept { return slice_; }
  [[nodiscard]] std::int64_t integer() const noexcept { return integer_; }
  [[nodiscard]] bool boolean() const noexcept { return integer_ != 0; }
  [[nodiscard]] const Tensor& tensor() const noexcept { return tensor_; }

 private:
  enum class Kind : std::uint8_t { none, ellipsis, slice, integer, boolean, tensor };
  Kind kind_;
  Slice slice_;
  std::int64_t integer_ = 0;
  Tensor tensor_;
};

}  // namespace indexing

/// An iterator over the parts x[0], x[1], … of a tensor. They are views.
class RowIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Tensor;
  using difference_type = std::ptrdiff_t;
  using reference = Tensor;
  using pointer = void;
  RowIterator() noexcept = default;
  RowIterator(Tensor x, std::int64_t at) noexcept : x_(std::move(x)), at_(at) {}
  [[nodiscard]] Tensor operator*() const { return x_[at_]; }
  RowIterator& operator++() noexcept {
    ++at_;
    return *this;
  }
  RowIterator operator++(int) noexcept {
    RowIterator before = *this;
    ++at_;
    return before;
  }
  friend bool operator==(const RowIterator& a, const RowIterator& b) noexcept {
    return a.at_ == b.at_;
  }

 private:
  Tensor x_;
  std::int64_t at_ = 0;
};

inline RowIterator Tensor::begin() const {
  (void)size(0);  // a scalar has no rows
  return {*this, 0};
}
inline RowIterator Tensor::end() const { return {*this, size(0)}; }

/// The number of parts x[0], x[1], …: the size of dim 0. Python's len.
///
/// Throws    IndexError for a scalar
[[nodiscard]] inline std::int64_t len(const Tensor& x) { return x.size(0); }

}  // namespace braid
