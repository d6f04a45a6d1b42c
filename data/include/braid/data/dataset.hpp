#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/core/collate.hpp>
#include <braid/data/sampler.hpp>

namespace braid::data {

/// Any type with size() and get(index). get must be const, thread-safe, and depend only on the
/// index. It returns a tree (see core/tree.hpp) or a number, in host memory.
///
///     struct Squares {
///       std::int64_t size() const { return 100; }
///       std::pair<Tensor, float> get(std::int64_t i) const { return {arange(3), 1.0f * i * i}; }
///     };
template <class D>
concept Dataset = requires(const D& d, std::int64_t i) {
  { d.size() } -> std::convertible_to<std::int64_t>;
  d.get(i);
};

/// The type that get(index) returns.
template <Dataset D>
using Item = std::remove_cvref_t<decltype(std::declval<const D&>().get(std::int64_t{}))>;

/// The type of a batch of items: the same tree, with one more dim in front of each tensor. Numbers
/// become tensors (see core/collate.hpp).
template <Dataset D> using Batch = Collated<Item<D>>;

/// A dataset that makes whole batches itself, faster than item by item. get_batch(indices) must
/// equal collating get(i) for each index. A DataLoader does not compile with a get_batch that has
/// other argument or result types.
template <class D>
concept BatchedDataset = Dataset<D> && requires(const D& d, std::span<const std::int64_t> indices) {
  { d.get_batch(indices) } -> std::same_as<Batch<D>>;
};

namespace detail {
/// A dataset whose items can be collated, as far as their own type shows it.
template <class D>
concept Loadable = Dataset<D> && (std::is_arithmetic_v<Item<D>> || Tree<Item<D>>);
/// Gives a readable compile error for a type that is not a Dataset.
template <class D> constexpr void check_dataset() {
  constexpr bool kDataset = Dataset<D>;
  constexpr bool kSize = requires(D& d) { static_cast<std::int64_t>(d.size()); };
  constexpr bool kGet = requires(D& d) { d.get(std::int64_t{}); };
  static_assert(kSize, "braid: this dataset has no size(): write std::int64_t size() const");
  static_assert(kGet, "braid: this dataset has no get(): write auto get(std::int64_t index) const");
  static_assert(kDataset || !kSize || !kGet,
                "braid: size() and get(index) of this dataset must be const");
  if constexpr (kDataset && !Loadable<D>) check_tree<Item<D>>();
}
/// The type of a batch; after a compile error that of an item, so that the loop compiles.
template <class D> constexpr auto batch_type() {
  if constexpr (Loadable<D>) return std::type_identity<Batch<D>>();
  else if constexpr (requires(D& d) { std::optional(d.get(std::int64_t{})); })
    return std::type_identity<std::remove_cvref_t<decltype(std::declval<D&>().get(0))>>();
  else return std::type_identity<Tensor>();
}
template <class D> using BatchOf = typename decltype(batch_type<D>())::type;
/// 0 for what is no Dataset.
template <class D> [[nodiscard]] std::int64_t size_of(const D& dataset) {
  if constexpr (Dataset<D>) return dataset.size();
  else return 0;
}
/// Rejects at compile time a get_batch with other argument or result types, which a loader would
/// ignore.
template <Dataset D> constexpr void check_get_batch() {
  constexpr bool kThere = requires { &D::get_batch; } ||
                          requires(const D& d, std::span<const std::int64_t> i) { d.get_batch(i); };
  static_assert(
      BatchedDataset<D> || !kThere,
      "braid: get_batch of this dataset takes or gives something else than a batch of its "
      "items: expected Batch<D> get_batch(std::span<const std::int64_t>) const, where "
      "Batch<D> is what collating get(i) gives");
}
[[noreturn]] void index_out_of_range(const char* what, std::int64_t index, std::int64_t size);
void check_split(std::int64_t n);
/// Throws IndexError, naming `what`, unless all indices are in [0, size).
void check_indices(const char* what, std::span<const std::int64_t> indices, std::int64_t size);
}  // namespace detail

/// Throws IndexError, naming `what`, unless 0 <= index < size.
inline void check_index(const char* what, std::int64_t index, std::int64_t size) {
  if (index < 0 || index >= size) detail::index_out_of_range(what, index, size);
}

/// Some items of a dataset: a range, or a list of indices. Copies share the dataset.
template <Dataset D> class Subset {
 public:
  /// Items first … first + count - 1. Throws IndexError unless they exist.
  Subset(std::shared_ptr<const D> dataset, std::int64_t first, std::int64_t count)
      : dataset_(std::move(dataset)), first_(first), count_(count) {
    detail::check_get_batch<D>();
    const std::int64_t size = dataset_->size();
    if (first < 0 || first > size) detail::index_out_of_range("Subset", first, size);
    if (count < 0 || count > size - first)
      detail::index_out_of_range("Subset", count < 0 ? count : size, size);
  }
  /// The items at these indices, in this order. An index may occur twice. Throws IndexError for an
  /// index that does not exist.
  Subset(std::shared_ptr<const D> dataset, std::vector<std::int64_t> indices)
      : dataset_(std::move(dataset)), count_(static_cast<std::int64_t>(indices.size())) {
    detail::check_get_batch<D>();
    detail::check_indices("Subset", indices, dataset_->size());
    indices_ = std::make_shared<const std::vector<std::int64_t>>(std::move(indices));
  }

  [[nodiscard]] std::int64_t size() const noexcept { return count_; }
  /// Throws IndexError unless 0 <= index < size().
  [[nodiscard]] auto get(std::int64_t index) const {
    check_index("Subset", index, count_);
    return dataset_->get(original(index));
  }
  [[nodiscard]] auto get_batch(std::span<const std::int64_t> indices) const
    requires BatchedDataset<D>
  {
    std::vector<std::int64_t> originals;
    originals.reserve(indices.size());
    for (const std::int64_t i : indices) {
      check_index("Subset", i, count_);
      originals.push_back(original(i));
    }
    return dataset_->get_batch(originals);
  }
  /// Returns the index in the whole dataset.
  [[nodiscard]] std::int64_t original(std::int64_t index) const noexcept {
    return indices_ ? (*indices_)[static_cast<std::size_t>(index)] : first_ + index;
  }

 private:
  std::shared_ptr<const D> dataset_;
  std::int64_t first_ = 0;
  std::int64_t count_ = 0;
  std::shared_ptr<const std::vector<std::int64_t>> indices_;
};

/// Returns the first n items, and the rest. If n exceeds the size, the rest is empty.
///
/// Throws    ArgumentError if n < 0
///
///     const auto [train, test] = data::split(data::Mnist(), 50000);
template <Dataset D>
[[nodiscard]] std::pair<Subset<D>, Subset<D>> split(D dataset, std::int64_t n) {
  detail::check_split(n);
  const auto shared = std::make_shared<const D>(std::move(dataset));
  const std::int64_t size = shared->size();
  const std::int64_t first = n < size ? n : size;
  return {Subset<D>(shared, 0, first), Subset<D>(shared, first, size - first)};
}

/// The same after a shuffle with the seed (in the order of a loader's first epoch), so that both
/// parts have the same distribution.
template <Dataset D>
[[nodiscard]] std::pair<Subset<D>, Subset<D>> split(D dataset, std::int64_t n, std::uint64_t seed) {
  detail::check_split(n);
  const auto shared = std::make_shared<const D>(std::move(dataset));
  std::vector<std::int64_t> order = RandomSampler{seed}.indices(shared->size(), 0);
  const std::int64_t first = n < shared->size() ? n : shared->size();
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<std::int64_t> rest(middle, order.end());
  order.erase(middle, order.end());
  return {Subset<D>(shared, std::move(order)), Subset<D>(shared, std::move(rest))};
}

/// Returns the items at these indices, in this order.
template <Dataset D> [[nodiscard]] Subset<D> subset(D dataset, std::vector<std::int64_t> indices) {
  return Subset<D>(std::make_shared<const D>(std::move(dataset)), std::move(indices));
}

}  // namespace braid::data
