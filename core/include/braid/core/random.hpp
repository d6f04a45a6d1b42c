#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include <braid/core/tensor.hpp>

namespace braid {

/// Seeds the random generator and restarts its stream. The default seed is 0.
///
///     manual_seed(1);
///     const Tensor t = randn({2, 3});  // the same numbers in every run, on every device
void manual_seed(std::uint64_t seed);
/// Returns the seed in use: that of manual_seed or set_random_state.
[[nodiscard]] std::uint64_t initial_seed() noexcept;
/// Returns the stream number for one random operation and advances it. The seed, the stream and the
/// element's index determine the values (Philox4x32-10).
[[nodiscard]] std::uint64_t next_random_stream() noexcept;

/// The state of the random generator, which determines all later random values, also dropout's.
/// Checkpoints store it. A RandomScope does not change it.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< of the next random op outside of a RandomScope
  friend bool operator==(const RandomState&, const RandomState&) noexcept = default;
};
[[nodiscard]] RandomState random_state() noexcept;
void set_random_state(const RandomState& state) noexcept;

/// Determines the random values of one op: element e of the whole batch uses word e % 4 of Philox
/// block e / 4 of (seed, stream).
struct RandomKey {
  std::uint64_t seed = 0, stream = 0;
  int dim = 0;                 ///< the dim of the rows
  std::int64_t first_row = 0;  ///< index in the whole batch of this tensor's first row
};

/// While it exists, the random ops of this thread belong to one part of a batch: op k uses the
/// stream first + k, independent of other threads, and dropout knows which rows of the whole batch
/// it has. If the scopes of all parts have the same `first`, a mask does not depend on how the
/// batch is split. In a part after the first, random factories (rand, randn, …) use separate
/// streams (index << 48 is added).
class RandomScope {
 public:
  struct Part {
    std::uint64_t index = 0;               ///< of the part
    int dim = 0;                           ///< along which the batch is split
    std::int64_t first_row = 0, rows = 0;  ///< of this part
  };
  RandomScope(std::uint64_t first, const Part& part) noexcept;
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;
  /// Returns the stream of the next random op and advances it.
  [[nodiscard]] std::uint64_t take() noexcept {
    return first_ + used_.fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const Part& part() const noexcept { return part_; }

 private:
  std::uint64_t first_;
  std::atomic<std::uint64_t> used_{0};  // threads that this one starts may draw too
  Part part_;
  RandomScope* before_;
};

/// Does not compile: the name is RandomScope.
class RandomForward {
 public:
  using Part = RandomScope::Part;
  template <class T = void> RandomForward(std::uint64_t /*first*/, const Part& /*part*/) {
    static_assert(!sizeof(T*), "braid: RandomForward is now RandomScope");
  }
};

/// Advances the generator by the number of streams that a RandomScope has used.
void skip_random_streams(std::uint64_t streams) noexcept;

/// Returns the key of the next random op, for a tensor whose rows are those of the batch: along dim
/// 0, or along the RandomScope's dim inside one. If that dim has k times the rows of the
/// part, as in [batch * k, ..], k consecutive rows of it belong to each row of the batch.
/// With any other number of rows, they are counted from 0.
[[nodiscard]] RandomKey next_random_key(const Shape& shape);
/// The same for a tensor whose rows are always along dim 0.
[[nodiscard]] RandomKey next_random_key_of_rows(std::int64_t rows);

/// Standard normal values, of a floating-point dtype (else DTypeError). The same bits on every
/// device.
[[nodiscard]] Tensor randn(const Shape& shape, const TensorOptions& options = {});
/// Uniform in [0, 1), of a floating-point dtype.
[[nodiscard]] Tensor rand(const Shape& shape, const TensorOptions& options = {});
/// Uniform in [low, high), of a floating-point dtype.
///
/// Throws    ArgumentError unless low <= high and the dtype can hold both and their distance
[[nodiscard]] Tensor uniform(const Shape& shape, double low, double high,
                             const TensorOptions& options = {});
/// Uniform integers in [low, high), int64 unless another dtype is given.
///
/// Throws    ArgumentError unless low < high and all values are in the range of the dtype
[[nodiscard]] Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
                             const TensorOptions& options = {});
/// A random permutation of 0 … n-1 (Fisher-Yates), int64 unless another dtype is given.
///
/// Throws    ArgumentError for n < 0
[[nodiscard]] Tensor randperm(std::int64_t n, const TensorOptions& options = {});

/// Draws category indices at random: category j with the probability of its weight over the sum of
/// all. Without replacement, each further draw is from the remaining categories, and the result is
/// in the order of drawing. With one sample per row, `replacement` makes no difference.
///
/// Shapes    weights [categories] or [rows, categories] → int64 [samples] or [rows, samples]. With
///           replacement it needs rows × samples × categories bytes of memory
/// Types     floating point; computed in float64
/// Random    one stream of the generator, or that of `seed`; no gradient. The host waits for the
///           device, because the weights are checked
/// Throws    ShapeError for another rank, and for no categories; DTypeError; ArgumentError for
///           samples < 1, for weights that are negative, infinite or NaN, for a row whose weights
///           are all 0, and without replacement for a row with fewer weights above 0 than samples
/// Source    inversion of the cumulative sums; without replacement the smallest of exponential
///           times, Efraimidis & Spirakis 2006
///
///     const Tensor next = multinomial(softmax(logits, -1), 1);  // one class for each row
[[nodiscard]] Tensor multinomial(const Tensor& weights, std::int64_t samples,
                                 bool replacement = false, std::optional<std::uint64_t> seed = {});

}  // namespace braid
