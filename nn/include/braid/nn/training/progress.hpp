#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <braid/core/tree.hpp>
#include <braid/nn/training/checkpoint.hpp>
#include <braid/nn/training/options.hpp>
#include <braid/nn/training/stop.hpp>

namespace braid::training {

namespace detail {

/// Displays the progress of a run and writes the reported values to files
/// (nn/training/reporter.hpp).
class Reporter;
struct ReporterDelete {
  void operator()(Reporter* reporter) const noexcept;
};
using ReporterPtr = std::unique_ptr<Reporter, ReporterDelete>;

/// The position in a run. Epochs and batches count from 0.
struct Place {
  std::int64_t epoch = 0, epochs = 1, batch = 0, batches = 1;
};
[[nodiscard]] ReporterPtr make_reporter(const Options& options, const Place& start);
void step_begins(Reporter& reporter, const Place& place, std::int64_t rows);
void step_ends(Reporter& reporter);
void report(Reporter& reporter, std::string_view name, double value);
void report(Reporter& reporter, std::string_view name, const Tensor& value);

/// Returns the number of rows of a batch: its samples() if it has that, else the size of dim 0 of
/// its first tensor.
template <class B> [[nodiscard]] std::int64_t rows_of(const B& batch) {
  if constexpr (requires { batch.samples(); }) {
    return batch.samples();
  } else {
    const tree::Flat flat = tree::flatten(batch);
    for (const tree::Leaf& leaf : flat.leaves) {
      if (leaf.tensor->defined() && leaf.tensor->dim() > 0) return leaf.tensor->size(0);
    }
    return 1;
  }
}

/// A loader that a checkpoint can save, and that continues where it was.
template <class Loader>
concept HasPosition = HasState<Loader> && requires(const Loader& loader) {
  loader.epoch();
  loader.first_batch();
};

}  // namespace detail

/// A batch as progress returns it. It derives from the loader's batch and has its fields; it also
/// knows its position in the run and accepts values to display.
template <class B> class Step : public B {
 public:
  Step(B&& batch, const detail::Place& place, detail::Reporter& reporter)
      : B(std::move(batch)), place_(place), reporter_(&reporter) {}

  /// Shows the newest value next to the progress bar, and writes all values to the requested files.
  /// A Tensor must have one element. It is read later, when it is shown or written, so no step
  /// waits for it; do not change it in place until then.
  void report(std::string_view name, const Tensor& value) {
    detail::report(*reporter_, name, value);
  }
  void report(std::string_view name, double value) { detail::report(*reporter_, name, value); }

  /// True for the last batch of an epoch, and for the last one of the run.
  [[nodiscard]] bool is_last_of_epoch() const noexcept {
    return place_.batch + 1 == place_.batches;
  }
  [[nodiscard]] bool is_last() const noexcept {
    return is_last_of_epoch() && place_.epoch + 1 == place_.epochs;
  }
  /// The epoch, counted from 0.
  [[nodiscard]] std::int64_t epoch() const noexcept { return place_.epoch; }
  [[nodiscard]] std::int64_t batch_of_epoch() const noexcept { return place_.batch; }
  /// The number of batches of the whole run before this one.
  [[nodiscard]] std::int64_t step() const noexcept {
    return place_.epoch * place_.batches + place_.batch;
  }

 private:
  detail::Place place_;
  detail::Reporter* reporter_;
};

/// The range of all batches of all epochs; see progress().
template <class Loader> class Progress {
  using LoaderIterator = decltype(std::declval<Loader&>().begin());
  using Batch = std::remove_cvref_t<decltype(*std::declval<LoaderIterator&>())>;

 public:
  Progress(Loader& loader, const Options& options, Checkpoint* checkpoint)
      : loader_(loader), checkpoint_(checkpoint), epochs_(options.epochs) {
    if (checkpoint != nullptr) signals_.emplace();
    place_ = {.epoch = next_epoch(),
              .epochs = epochs_,
              .batch = next_batch(),
              .batches = static_cast<std::int64_t>(loader.batches())};
    reporter_ = detail::make_reporter(options, place_);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  class iterator {
   public:
    using value_type = Step<Batch>;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;
    iterator(iterator&&) noexcept = default;
    iterator& operator=(iterator&&) noexcept = default;
    [[nodiscard]] Step<Batch>& operator*() const noexcept { return *progress_->step_; }
    [[nodiscard]] Step<Batch>* operator->() const noexcept { return &*progress_->step_; }
    iterator& operator++() {
      progress_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept {
      return i.ended();
    }

   private:
    friend class Progress;
    explicit iterator(Progress* progress) : progress_(progress) {}
    [[nodiscard]] bool ended() const noexcept { return !progress_->step_.has_value(); }
    Progress* progress_;
  };

  /// May be called once only.
  [[nodiscard]] iterator begin() {
    start_epoch();
    return iterator(this);
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  [[nodiscard]] std::int64_t next_epoch() const {
    if constexpr (requires { loader_.epoch(); }) return loader_.epoch();
    else return place_.epoch;
  }
  [[nodiscard]] std::int64_t next_batch() const {
    if constexpr (requires { loader_.first_batch(); }) return loader_.first_batch();
    else return 0;
  }
  void start_epoch() {
    while (place_.epoch < epochs_) {
      place_.batch = next_batch();
      at_.emplace(loader_.begin());
      if (*at_ != loader_.end()) return take();
      ++place_.epoch;
    }
  }
  void take() {
    if (checkpoint_ != nullptr) saved_before_ = checkpoint_->last();
    step_.emplace(std::move(**at_), place_, *reporter_);
    detail::step_begins(*reporter_, place_, detail::rows_of(static_cast<const Batch&>(*step_)));
  }
  /// Skips the save if the step has saved already, as the last step of an epoch may: a second
  /// checkpoint would hold the same state.
  void save_once() {
    if (checkpoint_->last() == saved_before_) checkpoint_->save();
  }
  void advance() {
    step_.reset();
    detail::step_ends(*reporter_);
    if (checkpoint_ != nullptr && checkpoint_->on_any_rank(stop_requested() != 0))
      return save_once();
    ++*at_;
    if (*at_ != loader_.end()) {
      ++place_.batch;
      return take();
    }
    at_.reset();
    ++place_.epoch;
    start_epoch();
  }

  Loader& loader_;
  Checkpoint* checkpoint_;
  std::int64_t epochs_;
  std::int64_t saved_before_ = 0;
  detail::Place place_;
  detail::ReporterPtr reporter_;
  std::optional<StopSignals> signals_;
  std::optional<LoaderIterator> at_;
  std::optional<Step<Batch>> step_;
};

/// Iterates over the batches of a loader, for all epochs up to options.epochs, and displays the
/// progress of the run:
///
///     for (auto& batch : training::progress(loader, options)) {
///       loss = cross_entropy(model(batch.image), batch.label);
///       …
///       batch.report("loss", loss);
///     }
///
/// It prints to stderr. On a terminal it shows a bar with the remaining time, samples per second
/// and the reported values; otherwise it prints a line every 10 s and at the end of each epoch.
/// Samples are the rows of a batch, or its samples(). options.csv, .tensorboard and .trace name
/// files to write. It starts at the loader's current position, so a resumed run shows what remains.
///
/// The loader of a run with a checkpoint must be one of the objects that the checkpoint saves, and
/// have a position (epoch(), first_batch()). Then SIGINT and SIGTERM do not kill the run: the
/// current step is finished, the checkpoint is saved (unless the step saved it), the loop ends, and
/// the program should return training::exit_status(). A second signal kills it. If several ranks
/// share the checkpoint, all end after the same step, although only those that got the signal
/// return its status.
///
/// Throws    what the loader throws; IoError if a file cannot be written
template <class Loader>
[[nodiscard]] Progress<Loader> progress(Loader& loader, const Options& options) {
  return Progress<Loader>(loader, options, nullptr);
}
template <class Loader>
[[nodiscard]] Progress<Loader> progress(Loader& loader, const Options& options,
                                        Checkpoint& checkpoint) {
  static_assert(detail::HasPosition<Loader>,
                "braid: progress with a checkpoint needs a loader whose position can be saved, so "
                "that a resumed run does not repeat epochs: state(), load_state(), epoch() and "
                "first_batch(), as data::DataLoader has; pass the loader to the checkpoint too");
  return Progress<Loader>(loader, options, &checkpoint);
}

}  // namespace braid::training

/// `auto& [x, y] = batch` works as with the loader's own batches.
template <class B>
  requires braid::tree::Tuple<B>
struct std::tuple_size<braid::training::Step<B>> : std::tuple_size<B> {};
template <std::size_t I, class B>
  requires braid::tree::Tuple<B>
struct std::tuple_element<I, braid::training::Step<B>> : std::tuple_element<I, B> {};
