#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace braid::data {

/// Determines which items an epoch visits, and in which order. For a dataset of `size` items,
/// indices(size, epoch) returns them, and count(size) their number. Both must be const and depend
/// only on their arguments, so that an epoch can be repeated.
///
/// A sampler that deals each epoch to several ranks also has ranks(), their number. Batch k of all
/// ranks together must hold the same items for any number of ranks, if the batches of the ranks
/// together are equally large: the loader stores its position as one of all ranks.
///
///     struct EverySecond {
///       std::vector<std::int64_t> indices(std::int64_t size, std::int64_t) const {
///         std::vector<std::int64_t> list;
///         for (std::int64_t i = 0; i < size; i += 2) list.push_back(i);
///         return list;
///       }
///       std::int64_t count(std::int64_t size) const { return (size + 1) / 2; }
///     };
template <class S>
concept SamplerLike = requires(const S& s, std::int64_t size, std::int64_t epoch) {
  { s.indices(size, epoch) } -> std::convertible_to<std::vector<std::int64_t>>;
  { s.count(size) } -> std::convertible_to<std::int64_t>;
};

/// A sampler whose order depends on the batches that are made of it. The loader calls these
/// functions instead, with its batch_size.
template <class S>
concept BatchedSampler = SamplerLike<S> && requires(const S& s, std::int64_t size,
                                                    std::int64_t epoch, std::int64_t batch_size) {
  { s.indices(size, epoch, batch_size) } -> std::convertible_to<std::vector<std::int64_t>>;
  { s.count(size, batch_size) } -> std::convertible_to<std::int64_t>;
};

/// Holds any sampler by value. Empty by default.
class Sampler {
 public:
  Sampler() = default;
  template <class S>
    requires(!std::same_as<S, Sampler> && SamplerLike<S>)
  Sampler(S sampler) : impl_(std::make_shared<const Holder<S>>(std::move(sampler))) {}

  [[nodiscard]] explicit operator bool() const noexcept { return impl_ != nullptr; }
  /// Requires that the sampler is not empty.
  [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t size, std::int64_t epoch) const {
    return impl_->indices(size, epoch);
  }
  [[nodiscard]] std::int64_t count(std::int64_t size) const { return impl_->count(size); }
  /// The number of ranks among which the sampler deals an epoch; 1 for a sampler without ranks().
  [[nodiscard]] std::int64_t ranks() const { return impl_ == nullptr ? 1 : impl_->ranks(); }
  /// The same for batches of this size; they differ only for a BatchedSampler.
  [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t size, std::int64_t epoch,
                                                  std::int64_t batch_size) const {
    return impl_->indices(size, epoch, batch_size);
  }
  [[nodiscard]] std::int64_t count(std::int64_t size, std::int64_t batch_size) const {
    return impl_->count(size, batch_size);
  }

 private:
  struct Base {
    virtual ~Base() = default;
    [[nodiscard]] virtual std::vector<std::int64_t> indices(std::int64_t size,
                                                            std::int64_t epoch) const = 0;
    [[nodiscard]] virtual std::int64_t count(std::int64_t size) const = 0;
    [[nodiscard]] virtual std::int64_t ranks() const = 0;
    [[nodiscard]] virtual std::vector<std::int64_t> indices(std::int64_t size, std::int64_t epoch,
                                                            std::int64_t batch_size) const = 0;
    [[nodiscard]] virtual std::int64_t count(std::int64_t size, std::int64_t batch_size) const = 0;
  };
  template <class S> struct Holder final : Base {
    explicit Holder(S s) : sampler(std::move(s)) {}
    [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t size,
                                                    std::int64_t epoch) const override {
      return sampler.indices(size, epoch);
    }
    [[nodiscard]] std::int64_t count(std::int64_t size) const override {
      return sampler.count(size);
    }
    [[nodiscard]] std::int64_t ranks() const override {
      if constexpr (requires { sampler.ranks(); }) return sampler.ranks();
      else return 1;
    }
    [[nodiscard]] std::vector<std::int64_t> indices(
        std::int64_t size, std::int64_t epoch,
        [[maybe_unused]] std::int64_t batch_size) const override {
      if constexpr (BatchedSampler<S>) return sampler.indices(size, epoch, batch_size);
      else return sampler.indices(size, epoch);
    }
    [[nodiscard]] std::int64_t count(std::int64_t size,
                                     [[maybe_unused]] std::int64_t batch_size) const override {
      if constexpr (BatchedSampler<S>) return sampler.count(size, batch_size);
      else return sampler.count(size);
    }
    S sampler;
  };
  std::shared_ptr<const Base> impl_;
};

/// Visits 0, 1, … size - 1.
///
/// Throws    ArgumentError for a size that is negative or exceeds the limit of a vector,
///           OutOfMemoryError if there is not enough memory
struct SequentialSampler {
  [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t size, std::int64_t epoch) const;
  [[nodiscard]] std::int64_t count(std::int64_t size) const noexcept { return size; }
};

/// Visits each index once, in an order determined by (seed, epoch): Fisher-Yates with
/// Philox4x32-10, the same on every machine.
///
/// Throws    as SequentialSampler does
struct RandomSampler {
  std::uint64_t seed = 0;
  [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t size, std::int64_t epoch) const;
  [[nodiscard]] std::int64_t count(std::int64_t size) const noexcept { return size; }
};

/// The options of DistributedSampler.
struct DistributedSamplerOptions {
  bool shuffle = false;    ///< a new order in each epoch, determined by (seed, epoch)
  std::uint64_t seed = 0;  ///< the same on all ranks
  /// leave out the items that do not fill all ranks (consecutive: a whole batch of each rank),
  /// instead of repeating the first ones
  bool drop_last = false;
  /// deal each global batch (batch_size items of each rank) in consecutive blocks, so that the
  /// ranks together have the batches of one process with a batch of that size
  bool consecutive = false;
};

/// Visits the part of a dataset that belongs to one rank of several processes. With the default
/// options it takes every size-th item from `rank` on, and the first items again at the end, so
/// that all ranks get as many: 10 items for 4 ranks are dealt as 0 4 8, 1 5 9, 2 6 0, 3 7 1.
///
/// With `consecutive`, rank r gets items ⌊r m / size⌋ … ⌊(r + 1) m / size⌋ - 1 of each global batch
/// of m items. No item is repeated, so the last batches of the ranks may differ by one item.
/// `DataLoader::set_epoch` selects the order of an epoch.
///
/// Throws    ArgumentError `Invalid rank …` for a rank out of range; for a last global batch with
///           fewer items than ranks (consecutive without drop_last); as RandomSampler does
/// Source    torch.utils.data.DistributedSampler, where shuffle is true by default
///
///     const data::DistributedSampler sampler(0, 4, {.shuffle = true});  // rank 0 of 4
///     const std::vector<std::int64_t> mine = sampler.indices(10'000, 0);
class DistributedSampler {
 public:
  DistributedSampler(int rank, int size, const DistributedSamplerOptions& options = {});
  [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t size, std::int64_t epoch,
                                                  std::int64_t batch_size = 1) const;
  [[nodiscard]] std::int64_t count(std::int64_t size, std::int64_t batch_size = 1) const;
  [[nodiscard]] std::int64_t ranks() const noexcept { return size_; }

 private:
  std::int64_t rank_, size_;
  DistributedSamplerOptions options_;
};

}  // namespace braid::data
