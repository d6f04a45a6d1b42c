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

#include <braid/data/dataset.hpp>
#include <braid/data/sampler.hpp>

namespace braid::data {

struct LoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;    ///< a new order each epoch, decided by (seed, epoch)
  Sampler sampler = {};    ///< an order of one's own; not together with shuffle
  int workers = 0;         ///< threads that make batches ahead; 0: the calling thread makes each when it is asked for. Order and content do not depend on it
  bool drop_last = false;  ///< leave out a last batch that is not full
  std::optional<std::uint64_t> seed = {};  ///< of the shuffle; default: initial_seed() when the loader is made
};

namespace detail {

/// What is going on while a batch is made.
struct Progress {
  std::int64_t item = -1;                   // the one being fetched, -1 while they are joined
  const std::atomic<bool>* stop = nullptr;  // set when nobody waits for the batch any more
  [[nodiscard]] bool stopped() const noexcept { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

/// Makes batches, on any thread.
class BatchMaker {
 public:
  virtual ~BatchMaker() = default;
  /// A new batch of these items; null if it was stopped.
  [[nodiscard]] virtual void* make(std::span<const std::int64_t> indices, Progress& progress) const = 0;
  virtual void destroy(void* batch) const noexcept = 0;
};

/// Which items, in batches of how many.
struct EpochPlan {
  std::vector<std::int64_t> indices;
  std::int64_t batch_size = 1;
  std::int64_t batches = 0;
  std::int64_t epoch = 0;
  int workers = 0;
};

/// One pass over a dataset: hands out the batches in order, made ahead by workers or on demand.
class Epoch {
 public:
  Epoch(std::shared_ptr<const BatchMaker> maker, EpochPlan plan);
  Epoch(Epoch&& other) noexcept;
  Epoch& operator=(Epoch&& other) noexcept;
  /// Stops and joins the workers.
  ~Epoch();
  /// The next batch, null after the last one; the caller owns it. On WorkerError the position is unchanged: the next call makes the same batch again.
  [[nodiscard]] void* next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The order of items that the options ask for. Throws IndexError for a sampler's index that does not exist.
[[nodiscard]] EpochPlan plan_epoch(const LoaderOptions& options, const Sampler& sampler, std::int64_t size, std::int64_t epoch);
/// Throws ArgumentError; fills in the seed.
[[nodiscard]] LoaderOptions checked(LoaderOptions options, std::int64_t size);
[[nodiscard]] Sampler sampler_of(const LoaderOptions& options);
[[nodiscard]] std::int64_t batch_count(const LoaderOptions& options, const Sampler& sampler, std::int64_t size);

template <Dataset D>
class BatchMakerOf final : public BatchMaker {
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
/// The dataset is kept by value. Each begin() starts the next epoch (0, 1, …); set_epoch says which one the next begin() starts.
/// Numbers are copied: a batch shares nothing with the dataset. Nothing is recorded for autograd.
/// Throws  ArgumentError from the constructor (an empty dataset, batch_size < 1, workers < 0, shuffle and a sampler);
///         WorkerError from begin() and ++, naming item, batch and epoch, with the dataset's own exception nested
template <Dataset D>
class DataLoader {
 public:
  using Batch = data::Batch<D>;

  explicit DataLoader(D dataset, LoaderOptions options = {})
      : options_(detail::checked(std::move(options), dataset.size())),
        sampler_(detail::sampler_of(options_)),
        maker_(std::make_shared<const detail::BatchMakerOf<D>>(std::move(dataset))) {}

  /// An input iterator. It owns its batch, which lasts until ++ or the iterator's end; copying the batch out is cheap (its tensors are handles).
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
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept { return i.batch_ == nullptr; }

   private:
    friend class DataLoader;
    explicit iterator(detail::Epoch epoch) : epoch_(std::move(epoch)) { ++*this; }
    detail::Epoch epoch_;
    std::unique_ptr<Batch> batch_;
  };

  [[nodiscard]] iterator begin() {
    iterator first(detail::Epoch(maker_, detail::plan_epoch(options_, sampler_, dataset().size(), epoch_)));
    ++epoch_;  // only now: an epoch that could not start is started again
    return first;
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  /// Batches an epoch.
  [[nodiscard]] std::int64_t batches() const { return detail::batch_count(options_, sampler_, dataset().size()); }
  /// The epoch that the next begin() starts.
  [[nodiscard]] std::int64_t epoch() const noexcept { return epoch_; }
  void set_epoch(std::int64_t epoch) noexcept { epoch_ = epoch; }
  [[nodiscard]] const D& dataset() const noexcept { return maker_->dataset; }
  [[nodiscard]] const LoaderOptions& options() const noexcept { return options_; }

 private:
  LoaderOptions options_;
  Sampler sampler_;
  std::shared_ptr<const detail::BatchMakerOf<D>> maker_;
  std::int64_t epoch_ = 0;
};

}  // namespace braid::data
