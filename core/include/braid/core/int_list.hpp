#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <vector>

#include <braid/core/internal/max_rank.hpp>
#include <braid/core/shape.hpp>

namespace braid {

/// A list of whole numbers that an op takes: dims, shifts, sizes of parts, numbers of elements to
/// pad with. It may have any length; the op checks it. Made from `{1, 2}`, one number, a vector,
/// array or span of int64, or a Shape. Two numbers per dim are stored inline (no heap). Prints as
/// `[1, 2]`.
class IntList {
 public:
  IntList() noexcept = default;
  IntList(std::initializer_list<std::int64_t> numbers)
      : IntList(Copy(), {numbers.begin(), numbers.size()}) {}
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  IntList(I number) : inline_{static_cast<std::int64_t>(number)}, inline_size_(1) {}
  IntList(const Shape& numbers) : inline_size_(static_cast<std::size_t>(numbers.rank())) {
    static_assert(kMaxRank <= kInline);
    put(numbers.begin(), numbers.end());
  }
  template <class R>
    requires(!std::same_as<R, IntList> && !std::integral<R> &&
             std::convertible_to<const R&, std::span<const std::int64_t>>)
  IntList(const R& numbers) : IntList(Copy(), std::span<const std::int64_t>(numbers)) {}

  [[nodiscard]] std::size_t size() const noexcept {
    return heap_.empty() ? inline_size_ : heap_.size();
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  /// Number i < size(), unchecked.
  [[nodiscard]] std::int64_t operator[](std::size_t i) const noexcept { return data()[i]; }
  [[nodiscard]] std::int64_t& operator[](std::size_t i) noexcept {
    return heap_.empty() ? inline_[i] : heap_[i];
  }
  [[nodiscard]] const std::int64_t* data() const noexcept {
    return heap_.empty() ? inline_ : heap_.data();
  }
  [[nodiscard]] const std::int64_t* begin() const noexcept { return data(); }
  [[nodiscard]] const std::int64_t* end() const noexcept { return data() + size(); }
  [[nodiscard]] std::vector<std::int64_t> vec() const { return {begin(), end()}; }
  [[nodiscard]] std::span<const std::int64_t> span() const noexcept { return {data(), size()}; }

  friend bool operator==(const IntList& a, const IntList& b) noexcept {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i] != b[i]) return false;
    return true;
  }
  friend std::ostream& operator<<(std::ostream& out, const IntList& list);

 private:
  static constexpr std::size_t kInline = 2 * kMaxRank;
  struct Copy {};
  IntList(Copy, std::span<const std::int64_t> numbers) {
    if (numbers.size() > kInline) {
      heap_.assign(numbers.begin(), numbers.end());
    } else {
      put(numbers.data(), numbers.data() + numbers.size());
      inline_size_ = numbers.size();
    }
  }

  // Loops instead of <algorithm>, which would be a twentieth of the memory of each compilation.
  void put(const std::int64_t* from, const std::int64_t* end) noexcept {
    for (std::int64_t* to = inline_; from != end; ++from, ++to) *to = *from;
  }

  std::int64_t inline_[kInline] = {};
  std::size_t inline_size_ = 0;
  std::vector<std::int64_t> heap_;  // all numbers, if they do not fit inline; else empty
};

}  // namespace braid
