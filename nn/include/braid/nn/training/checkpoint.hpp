#pragma once
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/core/ops/create.hpp>
#include <braid/core/state_dict.hpp>
#include <braid/nn/module.hpp>
#include <braid/nn/optim.hpp>
#include <braid/nn/walks.hpp>

namespace braid::io { class Folder; }

namespace braid::training {

/// An object that manages its own state, such as a data loader: state() returns it,
/// load_state(dict) restores it.
template <class T>
concept HasState = requires(T& t, const T& c, std::span<const StateDict::value_type> dict) {
  { c.state() } -> std::same_as<StateDict>;
  t.load_state(dict);
};

/// An optimizer whose state is divided among ranks, such as parallel::ZeroRedundancyOptimizer. All
/// ranks call consolidate_state_dict(), which returns the whole state on rank 0. rates() returns an
/// optimizer with the learning rates and momenta.
template <class T>
concept IsSharded = requires(const T& c, T& t) {
  { t.rates() } -> std::same_as<optim::Optimizer&>;
  { c.consolidate_state_dict() } -> std::same_as<StateDict>;
  c.ranks().rank();
  c.local();
};

struct CheckpointRanks;

namespace detail {

/// Throws ArgumentError unless a sharded optimizer has the ranks of the checkpoint.
void check_same_ranks(const CheckpointRanks& ranks, int rank, int size);

/// One of the objects that a checkpoint saves.
class Part {
 public:
  virtual ~Part() = default;
  /// The name of its file, without the extension.
  [[nodiscard]] virtual std::string_view role() const noexcept = 0;
  /// Throws ArgumentError if there is nothing to save.
  virtual void check() const {}
  /// Throws ArgumentError if the object belongs to other ranks.
  virtual void check_ranks(const CheckpointRanks&) const {}
  /// Returns the state to be written; the tensors may share memory with the object. All ranks call
  /// it; only that of rank 0 is used.
  [[nodiscard]] virtual StateDict save() const = 0;
  /// Loads everything or, if an exception is thrown, nothing.
  virtual void load(std::span<const StateDict::value_type> dict) = 0;
  /// Returns what restore() needs to undo load() on this rank.
  [[nodiscard]] virtual StateDict own() const { return save(); }
  virtual void restore(std::span<const StateDict::value_type> dict) { load(dict); }
  /// For a loader: the number of batches so far. Otherwise -1.
  [[nodiscard]] virtual std::int64_t steps() const { return -1; }
};

/// What the groups of an optimizer have besides its own state.
struct Rates {
  std::vector<double> lr;
  std::vector<double> momenta;  ///< NaN for a group without; empty for an older file without any
};
/// Adds the entries `lr` and `momenta` to the state of an optimizer.
void save_rates(const optim::Optimizer& optimizer, StateDict& dict);
/// Copies the state without these entries to `rest`, and returns what they hold. Throws
/// ArgumentError unless they are float64, one for each group, and fit the optimizer.
[[nodiscard]] Rates split_rates(const optim::Optimizer& optimizer,
                                std::span<const StateDict::value_type> dict, StateDict& rest);
void restore_rates(optim::Optimizer& optimizer, const Rates& rates);
[[noreturn]] void nothing_to_save(const char* signature);
/// Loads the rates into `optimizer`, and calls `load` with the rest.
template <class F>
void load_optimizer(optim::Optimizer& optimizer, std::span<const StateDict::value_type> dict,
                    const F& load) {
  StateDict own;
  const Rates rates = split_rates(optimizer, dict, own);
  load(std::span<const StateDict::value_type>(own.data(), own.size()));
  restore_rates(optimizer, rates);
}

template <class T> class PartOf final : public Part {
 public:
  PartOf(T& thing, bool tensors) : thing_(thing), tensors_(tensors) {
    if constexpr (kTree)
      ::braid::detail::check_saves("Checkpoint", tree::flatten(thing), tensors, kSignature);
  }

  [[nodiscard]] std::string_view role() const noexcept override {
    if constexpr (kOptimizer || IsSharded<T>) return "optimizer";
    else if constexpr (HasState<T>) return "loader";
    else if constexpr (kSchedule) return "schedule";
    else return "model";
  }
  void check() const override {
    if constexpr (requires { thing_.swapped_in(); }) {  // the model's own numbers are not in it
      if (thing_.swapped_in())
        throw ArgumentError(
            "Checkpoint: expected the model's own parameters, got a model whose "
            "average is swapped in");
    }
    if constexpr (kTree) {
      if (state_dict(std::as_const(thing_), {.tensors = tensors_}).empty())
        nothing_to_save(kSignature);
    }
  }
  [[nodiscard]] StateDict save() const override {
    if constexpr (HasState<T>) {
      return thing_.state();
    } else if constexpr (IsSharded<T>) {
      StateDict dict = thing_.consolidate_state_dict();
      save_rates(thing_.rates(), dict);
      return dict;
    } else {
      StateDict dict = state_dict(std::as_const(thing_), {.tensors = tensors_});
      if constexpr (kOptimizer) save_rates(thing_, dict);
      return dict;
    }
  }
  void load(std::span<const StateDict::value_type> dict) override {
    check();
    if constexpr (HasState<T>) thing_.load_state(dict);
    else if constexpr (kOptimizer)
      load_optimizer(thing_, dict, [&](const auto& rest) { load_state_dict(thing_, rest); });
    else if constexpr (IsSharded<T>)
      load_optimizer(thing_.rates(), dict, [&](const auto& rest) { thing_.load_state_dict(rest); });
    else load_state_dict(thing_, dict, {.tensors = tensors_});
  }
  void check_ranks(const CheckpointRanks& ranks) const override {
    if constexpr (IsSharded<T>)
      check_same_ranks(ranks, thing_.ranks().rank(), thing_.ranks().size());
  }
  [[nodiscard]] StateDict own() const override {
    if constexpr (IsSharded<T>) {
      StateDict dict;
      if (thing_.local()) dict = state_dict(*thing_.local());
      save_rates(thing_.rates(), dict);
      return dict;
    } else {
      return save();
    }
  }
  void restore(std::span<const StateDict::value_type> dict) override {
    if constexpr (IsSharded<T>)
      load_optimizer(thing_.rates(), dict, [&](const auto& rest) { thing_.restore_local(rest); });
    else load(dict);
  }
  [[nodiscard]] std::int64_t steps() const override {
    if constexpr (HasState<T> && requires(const T& t) { t.steps(); }) return thing_.steps();
    else return -1;
  }

 private:
  static constexpr bool kOptimizer = std::derived_from<T, optim::Optimizer>;
  static constexpr bool kSchedule =
      !kOptimizer && !HasState<T> && !IsSharded<T> && requires(const T& t) {
        t.lr();
        t.steps();
      };
  static constexpr bool kTree = !kOptimizer && !kSchedule && !HasState<T> && !IsSharded<T>;
  static constexpr const char* kSignature = ::braid::detail::signature<T>();
  T& thing_;
  bool tensors_;
};

}  // namespace detail

/// The processes of a job that save one checkpoint together; parallel::checkpoint_ranks makes it.
struct CheckpointRanks {
  int rank = 0, size = 1;
  /// Returns the values of all ranks, in rank order. All ranks call it, with equally many values.
  /// Throws if one of them does not. Not called if size is 1.
  std::function<std::vector<std::int64_t>(std::span<const std::int64_t>)> gather = {};
};

namespace detail {

/// The calls of a checkpoint that all ranks make together.
class Agreement {
 public:
  explicit Agreement(CheckpointRanks ranks) : ranks_(std::move(ranks)) {}
  [[nodiscard]] bool is_writer() const noexcept { return ranks_.rank == 0; }
  [[nodiscard]] int rank() const noexcept { return ranks_.rank; }
  [[nodiscard]] std::vector<std::int64_t> gather(std::span<const std::int64_t> values) const;
  /// Returns each rank's value.
  [[nodiscard]] std::vector<std::int64_t> gather(std::int64_t value) const;
  /// Returns rank 0's value.
  [[nodiscard]] std::int64_t from_writer(std::int64_t value) const { return gather(value)[0]; }
  /// Throws on all ranks if one of them has failed: its own error there, and on the others one that
  /// names the ranks.
  void confirm(const char* call, const std::exception_ptr& failure) const;

 private:
  CheckpointRanks ranks_;
};

}  // namespace detail

/// The options of Checkpoint.
struct CheckpointOptions {
  /// Created if missing. Empty: nothing is saved, and there is nothing to load.
  std::string folder = {};
  int keep = 2;          ///< number of the newest checkpoints to keep; older ones are removed
  bool tensors = false;  ///< also save plain Tensor fields of models and other trees
  CheckpointRanks ranks =
      {};  ///< parallel::checkpoint_ranks(process) in a job of several processes
};

/// Saves a training run, so that it can be interrupted at any time. A resumed run gives the same
/// bits as an uninterrupted one:
///
///     training::Checkpoint checkpoint("runs/digits", model, optimizer, schedule, loader);
///     if (options.resume) checkpoint.load_latest();
///     …
///     checkpoint.save();
///
/// Accepts models and other trees (it saves parameters and buffers), optimizers (including their
/// learning rates and momenta; of a parallel::ZeroRedundancyOptimizer what the undivided one has,
/// of a parallel::ReplicatedOptimizer its main()), schedules, loaders, and any other type that
/// satisfies HasState. It keeps references to them. The state of the random number generator is
/// always saved too. Each save creates a folder `step-00001000` with one safetensors file for each
/// object and a manifest. The folder appears completely or not at all, even if the power fails
/// (docs/notes/checkpoint.md).
/// Files that do not belong to a checkpoint are left alone, both in the folder and inside the
/// checkpoints. A warning is printed if such a file has a checkpoint's name or prevents a removal.
///
/// In a job of several processes, options.ranks joins their checkpoints: save, load and load_latest
/// are then calls of all ranks. Rank 0 writes, and commits after all ranks have confirmed that they
/// can save, and rank 0 that everything is written. All ranks read from the same folder, which must
/// be on a file system that they share. If one rank fails, all throw, and nothing is saved or
/// changed. The files do not depend on the number of ranks: a run may go on with another one. Each
/// rank has its own random state; ranks that the saved run did not have continue rank 0's.
///
/// Throws    ArgumentError from the constructor if keep < 1, or for a tree of plain tensors only
///           without options.tensors; from save and load for a tree without tensors
class Checkpoint {
 public:
  template <std::convertible_to<std::string> Folder, class... Parts>
  explicit Checkpoint(Folder folder, Parts&... parts)
      : Checkpoint(CheckpointOptions{.folder = std::move(folder)}, parts...) {}
  template <class... Parts>
  explicit Checkpoint(CheckpointOptions options, Parts&... parts) : options_(std::move(options)) {
    begin();
    (add(std::make_unique<detail::PartOf<Parts>>(parts, options_.tensors)), ...);
  }
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  /// Saves a checkpoint, then removes older ones once the new one is safely on disk. The number of
  /// the checkpoint is the number of batches that the loader has produced; without a loader, one
  /// more than last(). If the folder already contains a number as large, it is one more than the
  /// newest there. So the checkpoint with the largest number is always the one saved last.
  ///
  /// Throws    IoError; then the older ones are unchanged. ArgumentError for numbers above
  ///           999,999,999,999,999, or if the ranks are at different steps. Error if another rank
  ///           failed. Files that cannot be removed cause a warning only.
  void save();
  /// Loads the newest checkpoint. Returns false if there is none. Folders without a manifest are
  /// skipped: their save was interrupted. A damaged checkpoint (contents that differ from the
  /// manifest, a missing file, or a link, folder or pipe instead of a file) causes a warning, and
  /// the one before it is loaded. If none is left, the error of the newest is thrown.
  ///
  /// Throws    IoError; ArgumentError if the checkpoint holds other objects (the message says what
  ///           does not fit), or if the ranks' files differ; Error if another rank failed. If an
  ///           exception is thrown, nothing was changed.
  bool load_latest();
  /// Loads the checkpoint with this number. Throws as load_latest, and IoError if it does not
  /// exist.
  void load(std::int64_t number);
  /// Returns the numbers of the checkpoints in the folder, ascending.
  [[nodiscard]] std::vector<std::int64_t> numbers() const;
  /// Returns the number of the last checkpoint saved or loaded by this object; 0 if there was none.
  [[nodiscard]] std::int64_t last() const noexcept { return last_; }
  [[nodiscard]] const CheckpointOptions& options() const noexcept { return options_; }
  /// Returns whether a rank passes true. All ranks call it. With one rank it returns `value`.
  [[nodiscard]] bool on_any_rank(bool value) const;

 private:
  void begin();
  void add(std::unique_ptr<detail::Part> part);
  [[nodiscard]] std::int64_t check_parts() const;
  [[nodiscard]] std::vector<StateDict> read(const io::Folder& folder, std::uint32_t& sum) const;
  [[nodiscard]] std::vector<StateDict> apply(const std::vector<StateDict>& fresh,
                                             const std::string& path);
  void restore(const std::vector<StateDict>& before, std::size_t parts);
  [[nodiscard]] std::exception_ptr load_on_all(std::int64_t number);
  void remove_unfinished(const io::Folder& root);
  void remove_older(const io::Folder& root);
  void warn_once(std::string text);

  struct Entry {
    std::string file;
    std::unique_ptr<detail::Part> part;
  };
  CheckpointOptions options_;
  std::vector<Entry> parts_;
  std::int64_t last_ = 0;
  std::vector<std::string> warned_;
};

}  // namespace braid::training
