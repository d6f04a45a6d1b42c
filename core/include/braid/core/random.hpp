#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include <braid/core/tensor.hpp>

namespace braid {

/// Seeds the random factories and starts their stream anew. The default seed is 0.
void manual_seed(std::uint64_t seed);
/// The seed of manual_seed.
[[nodiscard]] std::uint64_t initial_seed() noexcept;
/// A stream number for one random operation; each call gives the next. Together with the seed and
/// the element's index it decides the numbers (Philox4x32-10).
[[nodiscard]] std::uint64_t next_random_stream() noexcept;

/// What decides all numbers that are drawn from now on, dropout's too; a checkpoint keeps it. A
/// RandomForward leaves it alone.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< of the next random op outside of a RandomForward
  friend bool operator==(const RandomState&, const RandomState&) noexcept = default;
};
[[nodiscard]] RandomState random_state() noexcept;
void set_random_state(const RandomState& state) noexcept;

/// What decides the random numbers of one op: word e % 4 of Philox block e / 4 of (seed, stream),
/// for the element that is number e of the whole batch.
struct RandomKey {
  std::uint64_t seed = 0, stream = 0;
  int dim = 0;                 ///< the axis of rows
  std::int64_t first_row = 0;  ///< of this tensor, in the whole batch
};

/// While it lives, the random ops of this thread belong to one forward: op number k of it takes
/// stream first + k, whatever other threads do, and dropout knows which rows of the whole batch it
/// has. DataParallel opens one in every replica, all with one `first`, so that a mask is the same
/// for every split. In a replica after the first, random factories (rand, randn, …) take streams of
/// their own, far from the others.
class RandomForward {
 public:
  struct Part {
    std::uint64_t replica = 0;
    int dim = 0;                           ///< that the batch is split along
    std::int64_t first_row = 0, rows = 0;  ///< of this replica
  };
  RandomForward(std::uint64_t first, const Part& part) noexcept;
  ~RandomForward();
  RandomForward(const RandomForward&) = delete;
  RandomForward& operator=(const RandomForward&) = delete;
  /// The stream of the next random op.
  [[nodiscard]] std::uint64_t take() noexcept {
    return first_ + used_.fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const Part& part() const noexcept { return part_; }

 private:
  std::uint64_t first_;
  std::atomic<std::uint64_t> used_{0};  // a thread that this one starts may draw too
  Part part_;
  RandomForward* before_;
};

/// Leaves out as many streams, which a RandomForward has used.
void skip_random_streams(std::uint64_t streams) noexcept;

/// The key of the next random op for a tensor whose rows are those of the batch along dim 0 (along
/// RandomForward's dim within one). Where the axis has k times the rows that the replica got, as in
/// [batch * k, ..], a row of the batch stands for k rows of it; where it has another number, the
/// rows count from 0.
[[nodiscard]] RandomKey next_random_key(const Shape& shape);
/// The same for a tensor whose rows are always along dim 0.
[[nodiscard]] RandomKey next_random_key_of_rows(std::int64_t rows);

/// Standard normal numbers. Types: floating point. The same bits on every device.
[[nodiscard]] Tensor randn(const Shape& shape, const TensorOptions& options = {});
/// Uniform in [0, 1). Types: floating point.
[[nodiscard]] Tensor rand(const Shape& shape, const TensorOptions& options = {});
/// Uniform in [low, high). Types: floating point.
[[nodiscard]] Tensor uniform(const Shape& shape, double low, double high,
                             const TensorOptions& options = {});
/// Uniform integers in [low, high), int64 unless another type is asked for. Throws ArgumentError
/// unless low < high, and for numbers that the type does not reach.
[[nodiscard]] Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
                             const TensorOptions& options = {});
/// A random order of 0 … n-1 (Fisher-Yates of our own), int64.
[[nodiscard]] Tensor randperm(std::int64_t n, const TensorOptions& options = {});

/// Categories drawn at random, category j with a probability that is its weight over the sum of
/// all. With one draw a row `replacement` makes no difference. Without it each further draw is from
/// those that are left, in the order in which they were drawn.
///
/// Shapes    weights [categories] or [rows, categories] → int64 [samples] or [rows, samples]. With
///           replacement it takes rows × samples × categories bytes
/// Types     floating point; computed in float64
/// Random    one stream of the global generator, or the seed's own; no gradient. The weights are
///           checked, for which the host waits for the device
/// Throws    ShapeError for other dimensions; DTypeError; ArgumentError for samples < 1, for
///           weights that are negative, infinite or NaN, for a row of zeros, and without
///           replacement for a row with fewer weights above 0 than samples
/// Source    inversion of the running sums; without replacement the smallest of exponential times,
///           Efraimidis & Spirakis 2006
[[nodiscard]] Tensor multinomial(const Tensor& weights, std::int64_t samples,
                                 bool replacement = false, std::optional<std::uint64_t> seed = {});

}  // namespace braid
