#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/core/state_dict.hpp>
#include <braid/data/dataset.hpp>
#include <braid/data/sampler.hpp>

namespace braid::data {

/// The options of DataLoader.
///
///     data::DataLoader loader(dataset, {.batch_size = 64, .shuffle = true, .workers = 4});
struct LoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;  ///< a new order in each epoch, determined by (seed, epoch)
  Sampler sampler = {};  ///< a custom order; not together with shuffle
  /// threads that prefetch batches; with 0 the calling thread makes each batch on demand. The order
  /// and content of batches do not depend on it
  int workers = 0;
  bool drop_last = false;  ///< skip the last batch if it is not full
  /// seed of the shuffle; default: initial_seed() when the loader is created
  std::optional<std::uint64_t> seed = {};
  /// batches are in pinned memory (Tensor::pin_memory), for `batch.to(device, true)`; the workers
  /// pin them. Without a CUDA device the loader warns, and they are not
  bool pin_memory = false;
};

namespace detail {

/// The state of a batch that is being made.
struct Progress {
  std::int64_t item = -1;                   // the item that is being fetched; -1 during collation
  const std::atomic<bool>* stop = nullptr;  // set when the batch is no longer needed
  [[nodiscard]] bool stopped() const noexcept {
    return stop != nullptr && stop->load(std::memory_order_relaxed);
  }
};

/// Makes batches. Thread-safe.
class BatchMaker {
 public:
  virtual ~BatchMaker() = default;
  /// Returns a new batch of these items, or null if `progress` was stopped.
  [[nodiscard]] virtual void* make(std::span<const std::int64_t> indices,
                                   Progress& progress) const = 0;
  virtual void destroy(void* batch) const noexcept = 0;
};

/// The items of an epoch, and how they are divided into batches.
struct EpochPlan {
  std::vector<std::int64_t> indices;
  std::int64_t batch_size = 1;
  std::int64_t batches = 0;
  std::int64_t epoch = 0;
  int workers = 0;
  std::int64_t first = 0;  // earlier batches are skipped: they were used before an interruption
};

/// The position of an iteration: the epoch, and how many of its batches were returned.
struct Position {
  std::int64_t epoch = 0, batch = 0;
};

/// A loader's position, which its iterators update. A copy of the loader has a separate position.
class SharedPosition {
 public:
  SharedPosition() : at_(std::make_shared<Position>()) {}
  SharedPosition(const SharedPosition& other) : at_(std::make_shared<Position>(*other.at_)) {}
  SharedPosition& operator=(const SharedPosition& other) {
    at_ = std::make_shared<Position>(*other.at_);
    return *this;
  }
  ~SharedPosition() = default;
  [[nodiscard]] Position& operator*() const noexcept { return *at_; }
  [[nodiscard]] Position* operator->() const noexcept { return at_.get(); }
  [[nodiscard]] const std::shared_ptr<Position>& share() const noexcept { return at_; }

 private:
  std::shared_ptr<Position> at_;
};

/// One pass over a dataset. Returns the batches in order, prefetched by workers or made on demand.
class Epoch {
 public:
  Epoch(std::shared_ptr<const BatchMaker> maker, EpochPlan plan);
  Epoch(Epoch&& other) noexcept;
  Epoch& operator=(Epoch&& other) noexcept;
  /// Stops and joins the workers.
  ~Epoch();
  /// Returns the next batch, or null after the last one. The caller owns it. A WorkerError leaves
  /// the position unchanged: the next call makes the same batch again.
  [[nodiscard]] void* next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the order of items for these options.
///
/// Throws    IndexError for a sampler's index that does not exist, ArgumentError if the sampler
///           returns another number of indices than its count
[[nodiscard]] EpochPlan plan_epoch(const LoaderOptions& options, const Sampler& sampler,
                                   std::int64_t size, std::int64_t epoch, std::int64_t first = 0);
/// Throws ArgumentError, naming `call`, if epoch < 0 or the count of batches up to it can overflow.
void check_epoch(const char* call, std::int64_t epoch, std::int64_t batches);
/// Returns the state of a loader for a checkpoint.
[[nodiscard]] StateDict position_state(const Position& position, const LoaderOptions& options,
                                       std::int64_t size);
/// Returns the position in the state, and sets the seed of the options.
///
/// Throws    ArgumentError for the first value that does not fit, and changes nothing then
[[nodiscard]] Position load_position(std::span<const StateDict::value_type> dict,
                                     LoaderOptions& options, std::int64_t size,
                                     std::int64_t batches);
/// Returns the options with the seed filled in.
///
/// Throws    ArgumentError if they are invalid
[[nodiscard]] LoaderOptions checked(LoaderOptions options, std::int64_t size);
[[nodiscard]] Sampler sampler_of(const LoaderOptions& options);
[[nodiscard]] std::int64_t batch_count(const LoaderOptions& options, const Sampler& sampler,
                                       std::int64_t size);

/// True if batches are to be pinned, and can be. Warns if they cannot.
[[nodiscard]] bool pins(const LoaderOptions& options);
/// Replaces the tensors of a new batch by pinned ones.
void pin(const tree::Flat& batch);

template <class D> class BatchMakerOf final : public BatchMaker {
 public:
  BatchMakerOf(D d, bool pinned) : dataset(std::move(d)), pinned_(pinned) {}
  void* make(std::span<const std::int64_t> indices, Progress& progress) const override {
    if constexpr (!Loadable<D>) {
      return nullptr;  // never called: a compile error
    } else if constexpr (BatchedDataset<D>) {
      return finished(dataset.get_batch(indices));
    } else {
      std::vector<Item<D>> items;
      items.reserve(indices.size());
      for (const std::int64_t i : indices) {
        if (progress.stopped()) return nullptr;
        progress.item = i;
        items.push_back(dataset.get(i));
      }
      progress.item = -1;
      return finished(collate(std::span<const Item<D>>(items)));
    }
  }
  void destroy(void* batch) const noexcept override { delete static_cast<BatchOf<D>*>(batch); }

  D dataset;

 private:
  template <class B> [[nodiscard]] void* finished(B&& made) const {
    auto batch = std::make_unique<Batch<D>>(std::forward<B>(made));
    if (pinned_) pin(tree::flatten(*batch));
    return batch.release();
  }
  bool pinned_;
};

}  // namespace detail

/// Loads the items of a dataset in batches, one epoch per loop:
///
///     data::DataLoader loader(dataset, {.batch_size = 64, .shuffle = true});
///     for (auto& [image, label] : loader) loss = cross_entropy(model(image), label);
///
/// Stores the dataset by value. Each begin() starts the next epoch (0, 1, …); set_epoch() sets the
/// epoch that the next begin() starts. state() returns the position of the iteration. After
/// load_state() the next begin() continues from there with the same batches, also in the middle of
/// an epoch. Items are copied: a batch shares no memory with the dataset. Nothing is recorded for
/// autograd.
///
/// Throws    ArgumentError from the constructor: batch_size < 1, workers < 0 or > 256, shuffle and
///           a sampler, or a dataset without items, because its empty epochs would silently train
///           nothing (PyTorch's loader rejects it too, but only if it shuffles); WorkerError from
///           begin() and ++, naming item, batch and epoch, with the dataset's own exception nested
template <class D> class DataLoader {
  static_assert((detail::check_dataset<D>(), true));

 public:
  using Batch = detail::BatchOf<D>;

  explicit DataLoader(D dataset, LoaderOptions options = {})
      : options_(detail::checked(std::move(options), detail::size_of(dataset))),
        sampler_(detail::sampler_of(options_)),
        maker_(std::make_shared<const detail::BatchMakerOf<D>>(std::move(dataset),
                                                               detail::pins(options_))) {
    if constexpr (detail::Loadable<D>) detail::check_get_batch<D>();
  }
  /// A compile error.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  DataLoader(D dataset, Number) : DataLoader(std::move(dataset)) {
    static_assert(!sizeof(Number*),
                  "braid: the options of a DataLoader have names: write {.batch_size = 64}");
  }

  /// An input iterator. It owns its batch until ++ or its destruction. Copying the batch is cheap,
  /// because tensors are handles.
  class iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    iterator(iterator&&) noexcept = default;
    iterator& operator=(iterator&&) noexcept = default;
    [[nodiscard]] Batch& operator*() const noexcept { return *batch_; }
    [[nodiscard]] Batch* operator->() const noexcept { return batch_.get(); }
    iterator& operator++() {
      batch_.reset(static_cast<Batch*>(epoch_.next()));
      if (++position_.batch > batches_) position_ = {position_.epoch + 1, 0};
      *shared_ = position_;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept {
      return i.batch_ == nullptr;
    }

   private:
    friend class DataLoader;
    iterator(detail::Epoch epoch, detail::Position position, std::int64_t batches,
             std::shared_ptr<detail::Position> shared)
        : epoch_(std::move(epoch)),
          position_(position),
          batches_(batches),
          shared_(std::move(shared)) {
      ++*this;
    }
    detail::Epoch epoch_;
    detail::Position position_;
    std::int64_t batches_;
    std::shared_ptr<detail::Position> shared_;
    std::unique_ptr<Batch> batch_;
  };

  [[nodiscard]] iterator begin() {
    iterator first(
        detail::Epoch(maker_, detail::plan_epoch(options_, sampler_, detail::size_of(dataset()),
                                                 epoch_, first_)),
        {epoch_, first_}, batches(), position_.share());
    ++epoch_;  // after the construction, so that an epoch that failed to start is started again
    first_ = 0;
    return first;
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  /// Returns the number of batches per epoch.
  [[nodiscard]] std::int64_t batches() const {
    return detail::batch_count(options_, sampler_, detail::size_of(dataset()));
  }
  /// Returns the epoch that the next begin() starts.
  [[nodiscard]] std::int64_t epoch() const noexcept { return epoch_; }
  /// Sets the epoch that the next begin() starts. A position in that epoch, which load_state() has
  /// restored, stays. Throws ArgumentError if the epoch is < 0, or so large that the count of
  /// batches could overflow.
  void set_epoch(std::int64_t epoch) {
    detail::check_epoch("set_epoch", epoch, batches());
    if (epoch == epoch_ && first_ != 0) return;
    epoch_ = epoch;
    first_ = 0;
    *position_ = {epoch, 0};
  }
  /// Returns the number of batches that the next begin() skips after load_state(); else 0.
  [[nodiscard]] std::int64_t first_batch() const noexcept { return first_; }
  /// Returns the number of batches since epoch 0. Earlier epochs count as complete, even if a loop
  /// ended before their last batch.
  [[nodiscard]] std::int64_t steps() const {
    return position_->epoch * batches() + position_->batch;
  }
  /// Returns the position of the iteration (epoch, batches returned), and what determines the
  /// order: seed, size of the dataset and of a batch. If the sampler deals to several ranks, the
  /// size is that of the ranks' batches together: the state fits any number of ranks.
  [[nodiscard]] StateDict state() const {
    return detail::position_state(normal(*position_), options_, detail::size_of(dataset()));
  }
  /// Makes the next begin() continue where state() was taken, in the same order. Throws
  /// ArgumentError for a dict that is not such a state and, in the middle of an epoch, unless
  /// dataset and batches have the same sizes. Changes nothing if it throws.
  void load_state(std::span<const StateDict::value_type> dict) {
    LoaderOptions options = options_;
    const detail::Position position =
        detail::load_position(dict, options, detail::size_of(dataset()), batches());
    Sampler sampler = detail::sampler_of(options);
    options_ = std::move(options);
    sampler_ = std::move(sampler);
    epoch_ = position.epoch;
    first_ = position.batch;
    *position_ = position;
  }
  [[nodiscard]] const D& dataset() const noexcept { return maker_->dataset; }
  [[nodiscard]] const LoaderOptions& options() const noexcept { return options_; }

 private:
  /// Returns the end of an epoch as the beginning of the next one.
  [[nodiscard]] detail::Position normal(const detail::Position& p) const {
    return p.batch < batches() ? p : detail::Position{p.epoch + 1, 0};
  }

  LoaderOptions options_;
  Sampler sampler_;
  std::shared_ptr<const detail::BatchMakerOf<D>> maker_;
  detail::SharedPosition position_;
  std::int64_t epoch_ = 0;  // the epoch of the next begin()
  std::int64_t first_ = 0;  // its first batch
};

}  // namespace braid::data
