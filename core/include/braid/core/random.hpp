#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include <braid/core/ops/create.hpp>

namespace braid {

/// Sets the seed of the random generator, and its stream number to 0. The default seed is 0.
///
/// Throws    CaptureError inside a captured step: replays would go on from the recorded seed
///
///     manual_seed(1);
///     const Tensor t = randn({2, 3});  // the same numbers in every run, on every device
void manual_seed(std::uint64_t seed);
/// Returns the seed in use, which manual_seed or set_random_state has set.
[[nodiscard]] std::uint64_t initial_seed() noexcept;
/// Returns the stream number of the next random op, and increases it. The seed, the stream number
/// and the index of the element determine a value (Philox4x32-10).
[[nodiscard]] std::uint64_t next_random_stream() noexcept;

/// The state of the random generator. It determines all later random values, also those of dropout.
/// Checkpoints store it. Ops inside a RandomScope do not change it.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< number for the next random op outside of a RandomScope
  friend bool operator==(const RandomState&, const RandomState&) noexcept = default;
};
[[nodiscard]] RandomState random_state() noexcept;
/// Throws    CaptureError inside a captured step, as manual_seed does
void set_random_state(const RandomState& state);

struct RandomShift;

/// Determines the random values of one op. Element e of the whole batch uses word e % 4 of Philox
/// block e / 4 of (seed, stream). Elements are counted row by row.
struct RandomKey {
  std::uint64_t seed = 0, stream = 0;
  int dim = 0;                 ///< the dim along which the rows are
  std::int64_t first_row = 0;  ///< the index of this tensor's first row in the whole batch
  /// of an op of a recorded step: what a replay adds. Null otherwise
  const RandomShift* shift = nullptr;
};

/// While it exists, the random ops of this thread belong to one part of a batch. Op k uses the
/// stream first + k, whatever other threads do. Dropout knows which rows of the whole batch it has.
/// So if the scopes of all parts have the same `first`, a mask does not depend on how the batch is
/// split. Random factories (rand, randn, …) add index << 48 to the stream, so that every part has
/// separate ones.
class RandomScope {
 public:
  struct Part {
    std::uint64_t index = 0;               ///< the index of the part
    int dim = 0;                           ///< the dim along which the batch is split
    std::int64_t first_row = 0, rows = 0;  ///< the rows of this part
    bool of_generator = false;             ///< `first` is the generator's number at the time
  };
  /// The seed is that of the generator at the time of each op, unless one is given.
  RandomScope(std::uint64_t first, const Part& part,
              std::optional<std::uint64_t> seed = {}) noexcept;
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;
  /// Returns the stream number of the next random op, and increases it.
  [[nodiscard]] std::uint64_t take() noexcept {
    return first_ + used_.fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const Part& part() const noexcept { return part_; }
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  /// The seed of the ops in this scope.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_ ? *seed_ : initial_seed(); }

 private:
  std::uint64_t first_;
  std::optional<std::uint64_t> seed_;
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

/// Increases the generator's stream number by `streams`: the number that a RandomScope has used.
/// Returns the state before, atomically: no other thread draws from the streams in between.
RandomState skip_random_streams(std::uint64_t streams) noexcept;

/// Returns the key of the next random op, for a tensor with the rows of the batch. Inside a
/// RandomScope the rows are along the scope's dim, otherwise along dim 0. The tensor may have k
/// rows for each row of the part, as a tensor [batch * k, ..] has. Then the index of its first
/// row is k times the part's first_row. If the number of rows is not a multiple of the part's, that
/// index is 0.
[[nodiscard]] RandomKey next_random_key(const Shape& shape);
/// The same for a tensor whose rows are always along dim 0.
[[nodiscard]] RandomKey next_random_key_of_rows(std::int64_t rows);

/// Returns standard normal values of a floating-point dtype. They have the same bits on every
/// device.
///
/// Throws    DTypeError for another dtype
[[nodiscard]] Tensor randn(const Shape& shape, const FactoryOptions& options = {});
/// Returns uniform values in [0, 1). Everything else is as for randn.
[[nodiscard]] Tensor rand(const Shape& shape, const FactoryOptions& options = {});
/// Returns uniform values in [low, high) of a floating-point dtype.
///
/// Throws    DTypeError for another dtype; ArgumentError unless low <= high and the dtype can hold
///           both bounds and their distance
[[nodiscard]] Tensor uniform(const Shape& shape, double low, double high,
                             const FactoryOptions& options = {});
/// Returns uniform integers in [low, high), in int64 unless another dtype is given.
///
/// Throws    ArgumentError unless low < high and all values are in the range of the dtype
[[nodiscard]] Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
                             const FactoryOptions& options = {});
/// Returns a random permutation of 0 … n-1 (Fisher-Yates), in int64 unless another dtype is given.
///
/// Throws    ArgumentError for n < 0, and if the dtype does not represent all numbers exactly
[[nodiscard]] Tensor randperm(std::int64_t n, const FactoryOptions& options = {});

/// Normal values with a mean and a standard deviation; else as randn.
///
/// Throws    DTypeError; ArgumentError for a negative std
[[nodiscard]] Tensor normal(double mean, double std, const Shape& shape,
                            const FactoryOptions& options = {});
/// 1 with the probability that x gives for each element, else 0, in x's dtype and on its device.
///
/// Throws    DTypeError unless x is floating point. A probability above 1 counts as 1, one below 0
///           and NaN as 0 (PyTorch refuses them)
[[nodiscard]] Tensor bernoulli(const Tensor& x);

/// Random values with the shape of t. Device and dtype are those of t unless options set them.
[[nodiscard]] inline Tensor rand_like(const Tensor& t, const FactoryOptions& options = {}) {
  return rand(t.shape(), detail::like(t, options));
}
[[nodiscard]] inline Tensor randn_like(const Tensor& t, const FactoryOptions& options = {}) {
  return randn(t.shape(), detail::like(t, options));
}
[[nodiscard]] inline Tensor randint_like(const Tensor& t, std::int64_t low, std::int64_t high,
                                         const FactoryOptions& options = {}) {
  return randint(low, high, t.shape(), detail::like(t, options));
}
[[nodiscard]] inline Tensor randint_like(const Tensor& t, std::int64_t high,
                                         const FactoryOptions& options = {}) {
  return randint_like(t, 0, high, options);
}
/// Uniform integers in [0, high).
[[nodiscard]] inline Tensor randint(std::int64_t high, const Shape& shape,
                                    const FactoryOptions& options = {}) {
  return randint(0, high, shape, options);
}

// The second form, as in ops/create.hpp.
#define BRAID_FACTORY(name, parameters, arguments)                                   \
  template <detail::OptionsInLibTorchsForm O> [[nodiscard]] Tensor name parameters { \
    return name arguments;                                                           \
  }
BRAID_FACTORY(randn, (const Shape& shape, const O& options), (shape, detail::options_of(options)))
BRAID_FACTORY(rand, (const Shape& shape, const O& options), (shape, detail::options_of(options)))
BRAID_FACTORY(uniform, (const Shape& shape, double low, double high, const O& options),
              (shape, low, high, detail::options_of(options)))
BRAID_FACTORY(normal, (double mean, double std, const Shape& shape, const O& options),
              (mean, std, shape, detail::options_of(options)))
BRAID_FACTORY(randint, (std::int64_t low, std::int64_t high, const Shape& shape, const O& options),
              (low, high, shape, detail::options_of(options)))
BRAID_FACTORY(randint, (std::int64_t high, const Shape& shape, const O& options),
              (0, high, shape, detail::options_of(options)))
BRAID_FACTORY(randperm, (std::int64_t n, const O& options), (n, detail::options_of(options)))
BRAID_FACTORY(rand_like, (const Tensor& t, const O& options), (t, detail::options_of(options)))
BRAID_FACTORY(randn_like, (const Tensor& t, const O& options), (t, detail::options_of(options)))
#undef BRAID_FACTORY

/// Draws category indices at random. The probability of a category is its weight divided by the sum
/// of all weights. Without replacement, each further draw is from the remaining categories, and the
/// result is in the order of drawing. With one sample for each row, `replacement` makes no
/// difference.
///
/// Shapes    weights [categories] or [rows, categories] → int64 [samples] or [rows, samples]
/// Memory    with replacement, rows × samples × categories bytes
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
