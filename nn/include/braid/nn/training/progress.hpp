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

/// Shows how a run goes on, and writes down what is reported (nn/training/reporter.hpp).
class Reporter;
struct ReporterDelete {
  void operator()(Reporter* reporter) const noexcept;
};
using ReporterPtr = std::unique_ptr<Reporter, ReporterDelete>;

/// Where a run is. Epochs and batches count from 0.
struct Place {
  std::int64_t epoch = 0, epochs = 1, batch = 0, batches = 1;
};
[[nodiscard]] ReporterPtr make_reporter(const Options& options, const Place& start);
void step_begins(Reporter& reporter, const Place& place, std::int64_t rows);
void step_ends(Reporter& reporter);
void report(Reporter& reporter, std::string_view name, double value);
void report(Reporter& reporter, std::string_view name, const Tensor& value);

/// Rows of a batch: what its samples() says, else the length of its first tensor.
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

}  // namespace detail

/// A batch as progress hands it out: it has the fields of the loader's batch (it is one), knows
/// where it stands and takes what is to be shown.
template <class B> class Step : public B {
 public:
  Step(B&& batch, const detail::Place& place, detail::Reporter& reporter)
      : B(std::move(batch)), place_(place), reporter_(&reporter) {}

  /// Shows the newest value beside the bar, and writes all of them to the files that were asked
  /// for. A Tensor of one element is read later, when it is shown or written: no step waits for it.
  /// It must not be changed in place until then.
  void report(std::string_view name, const Tensor& value) {
    detail::report(*reporter_, name, value);
  }
  void report(std::string_view name, double value) { detail::report(*reporter_, name, value); }

  [[nodiscard]] bool is_last_of_epoch() const noexcept {
    return place_.batch + 1 == place_.batches;
  }
  [[nodiscard]] bool is_last() const noexcept {
    return is_last_of_epoch() && place_.epoch + 1 == place_.epochs;
  }
  /// From 0 on.
  [[nodiscard]] std::int64_t epoch() const noexcept { return place_.epoch; }
  [[nodiscard]] std::int64_t batch_of_epoch() const noexcept { return place_.batch; }
  /// Batches of the whole run before this one.
  [[nodiscard]] std::int64_t step() const noexcept {
    return place_.epoch * place_.batches + place_.batch;
  }

 private:
  detail::Place place_;
  detail::Reporter* reporter_;
};

/// All batches of all epochs, see progress().
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

  /// Once.
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
  /// A step that has saved already, as the last one of an epoch may, needs no second checkpoint of
  /// the same numbers.
  void save_once() {
    if (checkpoint_->last() == saved_before_) checkpoint_->save();
  }
  void advance() {
    step_.reset();
    detail::step_ends(*reporter_);
    if (checkpoint_ != nullptr && stop_requested() != 0) return save_once();
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

/// The batches of a loader, epoch after epoch up to options.epochs, while it shows how the run goes
/// on:
///
///   for (auto& batch : training::progress(loader, options)) { …; batch.report("loss", loss); }
///
/// On a terminal a bar with the remaining time, samples a second and what was reported, else now
/// and then a line; on stderr. Samples are the rows of a batch, or what its samples() says.
/// options.csv, .tensorboard and .trace name files that are written too. It begins where the loader
/// is, so that a run that was resumed shows the rest.
///
/// With a checkpoint, SIGINT and SIGTERM do not kill the run: the step is finished, the checkpoint
/// saved (unless the step did), the loop ends, and the program returns training::exit_status(). A
/// second signal kills it.
///
/// Throws  what the loader throws; IoError for files that cannot be written
template <class Loader>
[[nodiscard]] Progress<Loader> progress(Loader& loader, const Options& options) {
  return Progress<Loader>(loader, options, nullptr);
}
template <class Loader>
[[nodiscard]] Progress<Loader> progress(Loader& loader, const Options& options,
                                        Checkpoint& checkpoint) {
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
