#pragma once
#include <cstdint>
#include <span>
#include <utility>

#include <braid/data/dataset.hpp>

namespace braid::data {

namespace detail {
/// Returns the size of dim 0, which must be the same for all tensors. Throws ArgumentError for a
/// tree without tensors, ShapeError, DeviceError.
[[nodiscard]] std::int64_t row_count(const tree::Flat& flat);
/// Replaces each tensor of `rows` by a new one with its rows at these indices. Throws IndexError.
void gather_rows(const tree::Flat& rows, std::span<const std::int64_t> indices, std::int64_t size);
/// Replaces each tensor by its row `index`, without dim 0. Throws IndexError.
void take_row(const tree::Flat& row, std::int64_t index, std::int64_t size);
}  // namespace detail

/// A dataset in memory: a tree of tensors. Item i is row i of each of them.
///
///   data::TensorDataset digits(data::Labelled{images, labels});
///
/// Items    get(i): views of the tensors; get_batch(indices): new tensors, into which the rows are
///          copied in one pass
/// Throws   ArgumentError for a tree without tensors; ShapeError unless all have the same number of
///          rows; DeviceError unless they are in host memory
template <class T> class TensorDataset {
 public:
  explicit TensorDataset(T rows)
      : rows_(std::move(rows)), size_(detail::row_count(tree::flatten(rows_))) {}

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] T get(std::int64_t index) const {
    T row = tree::share(rows_);
    detail::take_row(tree::flatten(row), index, size_);
    return row;
  }
  [[nodiscard]] T get_batch(std::span<const std::int64_t> indices) const {
    T batch = tree::share(rows_);
    detail::gather_rows(tree::flatten(batch), indices, size_);
    return batch;
  }
  /// Returns all rows.
  [[nodiscard]] const T& rows() const noexcept { return rows_; }

 private:
  T rows_;
  std::int64_t size_;
};

}  // namespace braid::data
