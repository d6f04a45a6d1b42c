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

 private:
  struct Base {
    virtual ~Base() = default;
    [[nodiscard]] virtual std::vector<std::int64_t> indices(std::int64_t size,
                                                            std::int64_t epoch) const = 0;
    [[nodiscard]] virtual std::int64_t count(std::int64_t size) const = 0;
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
    S sampler;
  };
  std::shared_ptr<const Base> impl_;
};

/// Visits 0, 1, … size - 1. Throws ArgumentError for a size that is negative or exceeds the limit
/// of a vector, OutOfMemoryError if there is not enough memory.
struct SequentialSampler {
  [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t size, std::int64_t epoch) const;
  [[nodiscard]] std::int64_t count(std::int64_t size) const noexcept { return size; }
};

/// Visits each index once, in an order determined by (seed, epoch): Fisher-Yates with
/// Philox4x32-10, the same on every machine. Throws as SequentialSampler does.
struct RandomSampler {
  std::uint64_t seed = 0;
  [[nodiscard]] std::vector<std::int64_t> indices(std::int64_t size, std::int64_t epoch) const;
  [[nodiscard]] std::int64_t count(std::int64_t size) const noexcept { return size; }
};

}  // namespace braid::data
