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

 private:
  struct Base {
    virtual ~Base() = default;
    [[nodiscard]] virtual std::vector<std::int64_t> indices(std::int64_t size,
                                                            std::int64_t epoch) const = 0;
    [[nodiscard]] virtual std::int64_t count(std::int64_t size) const = 0;
    [[nodiscard]] virtual std::int64_t ranks() const = 0;
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

}  // namespace braid::data
