#pragma once
#include <concepts>
#include <cstdint>
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

/// Keeps its state itself, as a data loader does: state() gives it, load_state(dict) puts it back.
template <class T>
concept HasState = requires(T& t, const T& c, std::span<const StateDict::value_type> dict) {
  { c.state() } -> std::same_as<StateDict>;
  t.load_state(dict);
};

namespace detail {

/// One of the things that a checkpoint keeps.
class Part {
 public:
  virtual ~Part() = default;
  /// What its file is called, without ending.
  [[nodiscard]] virtual std::string_view role() const noexcept = 0;
  /// Throws ArgumentError if there is nothing to save.
  virtual void check() const {}
  /// Shares numbers with the thing itself.
  [[nodiscard]] virtual StateDict save() const = 0;
  /// Either all is loaded, or, on an exception, nothing.
  virtual void load(std::span<const StateDict::value_type> dict) = 0;
  /// Batches so far, of a loader; else -1.
  [[nodiscard]] virtual std::int64_t steps() const { return -1; }
};

/// The learning rates of an optimizer, which its own state leaves out.
template <class O> [[nodiscard]] Tensor rates(const O& optimizer) {
  std::vector<double> list;
  if constexpr (requires { optimizer.groups(); }) {
    for (std::size_t i = 0; i < optimizer.groups(); ++i) list.push_back(optimizer.lr(i));
  } else {
    list.push_back(optimizer.lr());
  }
  return tensor(list, {.dtype = DType::float64});
}
void check_rates(const Tensor* rates, std::int64_t groups);
[[noreturn]] void nothing_to_save(const char* signature);
template <class O> void load_optimizer(O& optimizer, std::span<const StateDict::value_type> dict) {
  StateDict own(std::vector<StateDict::value_type>(dict.begin(), dict.end()));
  const Tensor* found = own.find("lr");
  check_rates(found, rates(optimizer).numel());
  const Tensor lr = *found;
  own.erase("lr");
  load_state_dict(optimizer, std::span<const StateDict::value_type>(own.data(), own.size()));
  const double* values = lr.data<double>();
  if constexpr (requires { optimizer.groups(); }) {
    for (std::size_t i = 0; i < optimizer.groups(); ++i) optimizer.set_lr(i, values[i]);
  } else {
    optimizer.set_lr(values[0]);
  }
}

template <class T> class PartOf final : public Part {
 public:
  PartOf(T& thing, bool tensors) : thing_(thing), tensors_(tensors) {
    if constexpr (kTree)
      ::braid::detail::check_saves("Checkpoint", tree::flatten(thing), tensors, kSignature);
  }

  [[nodiscard]] std::string_view role() const noexcept override {
    if constexpr (kOptimizer) return "optimizer";
    else if constexpr (HasState<T>) return "loader";
    else if constexpr (kSchedule) return "schedule";
    else return "model";
  }
  void check() const override {
    if constexpr (kTree) {
      if (state_dict(std::as_const(thing_), {.tensors = tensors_}).empty())
        nothing_to_save(kSignature);
    }
  }
  [[nodiscard]] StateDict save() const override {
    if constexpr (HasState<T>) {
      return thing_.state();
    } else {
      StateDict dict = state_dict(std::as_const(thing_), {.tensors = tensors_});
      if constexpr (kOptimizer) dict.set("lr", rates(thing_));
      return dict;
    }
  }
  void load(std::span<const StateDict::value_type> dict) override {
    check();
    if constexpr (HasState<T>) thing_.load_state(dict);
    else if constexpr (kOptimizer) load_optimizer(thing_, dict);
    else load_state_dict(thing_, dict, {.tensors = tensors_});
  }
  [[nodiscard]] std::int64_t steps() const override {
    if constexpr (HasState<T> && requires(const T& t) { t.steps(); }) return thing_.steps();
    else return -1;
  }

 private:
  static constexpr bool kOptimizer = std::derived_from<T, optim::Optimizer>;
  static constexpr bool kSchedule = !kOptimizer && !HasState<T> && requires(const T& t) {
    t.lr();
    t.steps();
  };
  static constexpr bool kTree = !kOptimizer && !kSchedule && !HasState<T>;
  static constexpr const char* kSignature = ::braid::detail::signature<T>();
  T& thing_;
  bool tensors_;
};

}  // namespace detail

struct CheckpointOptions {
  /// made where it is missing; empty: nothing is saved, and there is nothing to load
  std::string folder = {};
  int keep = 2;          ///< so many of the newest are kept, older ones removed
  bool tensors = false;  ///< plain Tensor fields of models and other trees are kept too
};

/// Saves a run so that it can be interrupted anywhere, and goes on with the same bits:
///
///   training::Checkpoint checkpoint("runs/digits", model, optimizer, schedule, loader);
///   if (options.resume) checkpoint.load_latest();
///   …
///   checkpoint.save();
///
/// Takes models and other trees (parameters and buffers are kept), optimizers (with their learning
/// rates), schedules, loaders, and whatever else HasState. It keeps references. The state of the
/// random numbers is always saved too. Each save is a folder `step-XXXXXXXX` with a safetensors
/// file for each thing and a manifest; it appears whole or not at all, also when the power fails
/// (docs/notes/checkpoint.md). What is no checkpoint's is left alone, in the folder and in the
/// checkpoints; where it is called like one, or stands in the way of a removal, that is a warning.
///
/// Throws  ArgumentError from the constructor (keep < 1, a tree of plain tensors alone without
///         options.tensors); from save and load for a tree that has no tensors
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

  /// Saves; older ones are removed when the new one is safe. Its number is that of the batches that
  /// the loader has handed out (without a loader: one more than the last one's), or one more than
  /// the newest in the folder where that is not smaller: so the newest is always the last saved.
  /// Throws  IoError; then the older ones are as they were. ArgumentError for numbers above
  ///         999,999,999,999,999. What could not be removed is a warning.
  void save();
  /// Loads the newest. False if there is none. Folders without a manifest are passed over: their
  /// save was interrupted. A damaged one (other bytes than the manifest says, a missing file, a
  /// link, folder or pipe in place of one) is a warning, and the one before it is taken; its error
  /// is thrown if none is left.
  /// Throws  IoError; ArgumentError if it was saved of other things (then the message says what
  ///         does not fit). On an exception nothing was changed.
  bool load_latest();
  /// Loads the one of this number. Throws as load_latest, IoError if it does not exist.
  void load(std::int64_t number);
  /// The numbers of those in the folder, ascending.
  [[nodiscard]] std::vector<std::int64_t> numbers() const;
  /// The number of the last one saved or loaded here; 0 if none was.
  [[nodiscard]] std::int64_t last() const noexcept { return last_; }
  [[nodiscard]] const CheckpointOptions& options() const noexcept { return options_; }

 private:
  void begin();
  void add(std::unique_ptr<detail::Part> part);
  void load_from(const io::Folder& folder);
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
