#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <braid/core/state_dict.hpp>
#include <braid/data/dataset.hpp>
#include <braid/data/sampler.hpp>

namespace braid::data {

struct LoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;  ///< a new order each epoch, decided by (seed, epoch)
  Sampler sampler = {};  ///< an order of one's own; not together with shuffle
  /// threads that make batches ahead; 0: the calling thread makes each when it is asked for. Order
  /// and content do not depend on it
  int workers = 0;
  bool drop_last = false;  ///< leave out a last batch that is not full
  /// of the shuffle; default: initial_seed() when the loader is made
  std::optional<std::uint64_t> seed = {};
};

namespace detail {

/// What is going on while a batch is made.
struct Progress {
  std::int64_t item = -1;                   // the one being fetched, -1 while they are joined
  const std::atomic<bool>* stop = nullptr;  // set when nobody waits for the batch any more
  [[nodiscard]] bool stopped() const noexcept {
    return stop != nullptr && stop->load(std::memory_order_relaxed);
  }
};

/// Makes batches, on any thread.
class BatchMaker {
 public:
  virtual ~BatchMaker() = default;
  /// A new batch of these items; null if it was stopped.
  [[nodiscard]] virtual void* make(std::span<const std::int64_t> indices,
                                   Progress& progress) const = 0;
  virtual void destroy(void* batch) const noexcept = 0;
};

/// Which items, in batches of how many.
struct EpochPlan {
  std::vector<std::int64_t> indices;
  std::int64_t batch_size = 1;
  std::int64_t batches = 0;
  std::int64_t epoch = 0;
  int workers = 0;
  std::int64_t first = 0;  // batches before it are left out: they were seen before an interruption
};

/// Where an iteration is: so many batches of this epoch were handed out.
struct Position {
  std::int64_t epoch = 0, batch = 0;
};

/// A loader's position, which its iterators move on. A copied loader has one of its own.
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

/// One pass over a dataset: hands out the batches in order, made ahead by workers or on demand.
class Epoch {
 public:
  Epoch(std::shared_ptr<const BatchMaker> maker, EpochPlan plan);
  Epoch(Epoch&& other) noexcept;
  Epoch& operator=(Epoch&& other) noexcept;
  /// Stops and joins the workers.
  ~Epoch();
  /// The next batch, null after the last one; the caller owns it. On WorkerError the position is
  /// unchanged: the next call makes the same batch again.
  [[nodiscard]] void* next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The order of items that the options ask for. Throws IndexError for a sampler's index that does
/// not exist.
[[nodiscard]] EpochPlan plan_epoch(const LoaderOptions& options, const Sampler& sampler,
                                   std::int64_t size, std::int64_t epoch, std::int64_t first = 0);
/// Throws ArgumentError, naming `call`, unless the batches up to this epoch can be counted.
void check_epoch(const char* call, std::int64_t epoch, std::int64_t batches);
/// What a checkpoint keeps of a loader.
[[nodiscard]] StateDict position_state(const Position& position, const LoaderOptions& options,
                                       std::int64_t size);
/// Throws ArgumentError, naming all that does not fit; then nothing was changed. Takes the seed
/// over into the options.
[[nodiscard]] Position load_position(std::span<const StateDict::value_type> dict,
                                     LoaderOptions& options, std::int64_t size,
                                     std::int64_t batches);
/// Throws ArgumentError; fills in the seed.
[[nodiscard]] LoaderOptions checked(LoaderOptions options, std::int64_t size);
[[nodiscard]] Sampler sampler_of(const LoaderOptions& options);
[[nodiscard]] std::int64_t batch_count(const LoaderOptions& options, const Sampler& sampler,
                                       std::int64_t size);

template <Dataset D> class BatchMakerOf final : public BatchMaker {
 public:
  explicit BatchMakerOf(D d) : dataset(std::move(d)) {}
  void* make(std::span<const std::int64_t> indices, Progress& progress) const override {
    if constexpr (BatchedDataset<D>) {
      return new Batch<D>(dataset.get_batch(indices));
    } else {
      std::vector<Item<D>> items;
      items.reserve(indices.size());
      for (const std::int64_t i : indices) {
        if (progress.stopped()) return nullptr;
        progress.item = i;
        items.push_back(dataset.get(i));
      }
      progress.item = -1;
      return new Batch<D>(collate(std::span<const Item<D>>(items)));
    }
  }
  void destroy(void* batch) const noexcept override { delete static_cast<Batch<D>*>(batch); }

  D dataset;
};

}  // namespace detail

/// Batches of a dataset, epoch after epoch:
///
///   data::DataLoader loader(dataset, {.batch_size = 64, .shuffle = true});
///   for (auto& batch : loader) …
///
/// The dataset is kept by value. Each begin() starts the next epoch (0, 1, …); set_epoch says which
/// one the next begin() starts. state() says how far the iteration is, and load_state() lets the
/// next begin() go on there, in the middle of an epoch too, with the same batches. Numbers are
/// copied: a batch shares nothing with the dataset. Nothing is recorded for autograd.
/// Throws  ArgumentError from the constructor: batch_size < 1, workers < 0, shuffle and a sampler,
///         or a dataset without items, whose empty epochs would train nothing and say nothing (as
///         PyTorch's loader refuses one that shuffles);
///         WorkerError from begin() and ++, naming item, batch and epoch, with the dataset's own
///         exception nested
template <Dataset D> class DataLoader {
 public:
  using Batch = data::Batch<D>;

  explicit DataLoader(D dataset, LoaderOptions options = {})
      : options_(detail::checked(std::move(options), dataset.size())),
        sampler_(detail::sampler_of(options_)),
        maker_(std::make_shared<const detail::BatchMakerOf<D>>(std::move(dataset))) {
    detail::check_get_batch<D>();
  }

  /// An input iterator. It owns its batch, which lasts until ++ or the iterator's end; copying the
  /// batch out is cheap (its tensors are handles).
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
    iterator first(detail::Epoch(maker_, detail::plan_epoch(options_, sampler_, dataset().size(),
                                                            epoch_, first_)),
                   {epoch_, first_}, batches(), position_.share());
    ++epoch_;  // only now: an epoch that could not start is started again
    first_ = 0;
    return first;
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  /// Batches an epoch.
  [[nodiscard]] std::int64_t batches() const {
    return detail::batch_count(options_, sampler_, dataset().size());
  }
  /// The epoch that the next begin() starts.
  [[nodiscard]] std::int64_t epoch() const noexcept { return epoch_; }
  /// Throws ArgumentError for an epoch below 0, or one whose batches could not be counted.
  void set_epoch(std::int64_t epoch) {
    detail::check_epoch("set_epoch", epoch, batches());
    epoch_ = epoch;
    first_ = 0;
    *position_ = {epoch, 0};
  }
  /// Batches of the next begin()'s epoch that it leaves out, because load_state said so; else 0.
  [[nodiscard]] std::int64_t first_batch() const noexcept { return first_; }
  /// Batches handed out since epoch 0; those of an epoch that was broken off count.
  [[nodiscard]] std::int64_t steps() const {
    return position_->epoch * batches() + position_->batch;
  }
  /// How far the iteration is (epoch, batches handed out), and what decides the order: seed, size
  /// of the dataset and of a batch.
  [[nodiscard]] StateDict state() const {
    return detail::position_state(normal(*position_), options_, dataset().size());
  }
  /// The next begin() goes on where state() was taken, in that order. Throws ArgumentError for a
  /// dict that is not such a state, and in the middle of an epoch unless dataset and batches have
  /// the same size as then; nothing is changed then.
  void load_state(std::span<const StateDict::value_type> dict) {
    LoaderOptions options = options_;
    const detail::Position position =
        detail::load_position(dict, options, dataset().size(), batches());
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
  /// The end of an epoch is the beginning of the next.
  [[nodiscard]] detail::Position normal(const detail::Position& p) const {
    return p.batch < batches() ? p : detail::Position{p.epoch + 1, 0};
  }

  LoaderOptions options_;
  Sampler sampler_;
  std::shared_ptr<const detail::BatchMakerOf<D>> maker_;
  detail::SharedPosition position_;
  std::int64_t epoch_ = 0;  // of the next begin()
  std::int64_t first_ = 0;  // its first batch
};

}  // namespace braid::data
