#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/core/checkpoint.hpp>
#include <braid/core/random.hpp>
#include <braid/core/trace.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/devices.hpp>
#include <braid/parallel/gather.hpp>
#include <braid/parallel/parallel_apply.hpp>
#include <braid/parallel/replicate.hpp>
#include <braid/parallel/scatter.hpp>

// One call of a DataParallel in its steps, and what a DataParallel keeps between calls.
namespace braid::parallel {

/// A module that collects values from plain fields (counters, flags) of its replicas.
/// `void sync_state(std::span<const M> replicas) const` is called on the wrapped module after each
/// call that ran replicas, before outputs are gathered. It is not called after a call that failed,
/// nor where the module itself runs. The fields that it sets must be `mutable`, like those that a
/// forward sets.
template <class M>
concept SyncsState =
    requires(const M& module, std::span<const M> replicas) { module.sync_state(replicas); };

/// How to merge the buffers that replicas write in training (BatchNorm's running statistics).
enum class MergeBuffers : std::uint8_t {
  replica0,  ///< keep those of replica 0, discard the others
  /// floating point buffers become the mean over the replicas, weighted by their rows; other
  /// buffers are taken from replica 0
  mean
};

struct DataParallelOptions;

namespace detail {

class ReplicatedParameters;

/// The options of a call, from those of any type of DataParallel.
struct CallOptions {
  std::optional<Device> output_device;
  ScatterOptions scatter;
  std::vector<int> output_dims;
  MergeBuffers merge_buffers = MergeBuffers::replica0;
  bool cache = true;
  std::size_t bucket_bytes = kBucketBytes;
  std::size_t virtual_replicas = 0;  ///< 0: one replica on each device that gets rows
};

/// The devices and options of a DataParallel, and what it keeps between its calls: the copies of
/// the weights. A copy has the same devices and options, and no copies of the weights.
class State {
 public:
  State();  ///< no devices
  /// Checks the devices.
  State(const char* name, std::vector<Device> devices, CallOptions options);
  State(const State& other);
  State(State&&) noexcept;
  State& operator=(const State& other);
  State& operator=(State&&) noexcept;
  ~State();

  [[nodiscard]] const std::vector<Device>& devices() const noexcept;
  [[nodiscard]] const CallOptions& options() const noexcept;
  /// Warns, once per process, of GPUs of which one will delay another, unless the options say how
  /// many rows each gets.
  void warn_of_imbalance() const;
  /// What the last call sent to the other devices, and what it found there.
  [[nodiscard]] ReplicateBytes last_bytes() const;

  /// Makes every device keep the parameters, as long as the result lives (ReplicatedOptimizer).
  [[nodiscard]] std::shared_ptr<ReplicatedParameters> replicate_parameters(
      const tree::Flat& module) const;
  /// Those of an earlier replicate_parameters, or null.
  [[nodiscard]] std::shared_ptr<ReplicatedParameters> replicated_parameters() const noexcept;
  /// Removes the gradients on the other devices.
  void zero_grad() const noexcept;

 private:
  friend class Call;
  struct Kept;
  std::shared_ptr<Kept> kept_;
};

/// The random streams of one call, however it is split: each replica uses the streams that one
/// undivided call would use, for its rows of the batch.
class RandomSplit {
 public:
  RandomSplit(int dim, std::span<const int> dims);
  ~RandomSplit();
  RandomSplit(const RandomSplit&) = delete;
  RandomSplit& operator=(const RandomSplit&) = delete;
  /// The first replica is this one of the whole batch, and has its rows from there on.
  void begin_at(std::uint64_t replica, std::int64_t row) noexcept {
    first_replica_ = replica;
    first_row_ = row;
  }
  /// Adds the next replica. Its rows are those of the first leaf that has the dim. Without leaves
  /// it gets the input's own.
  void add(const tree::Flat& input, std::span<const Tensor> leaves);
  /// One replica's part, during its call.
  class Scope {
   public:
    Scope(RandomSplit& split, std::size_t replica)
        : split_(split), forward_(split.first_, split.parts_[replica]) {}
    ~Scope();

   private:
    RandomSplit& split_;
    RandomScope forward_;
  };
  [[nodiscard]] Scope scope(std::size_t replica) { return Scope(*this, replica); }
  [[nodiscard]] std::int64_t rows(std::size_t replica) const { return parts_[replica].rows; }

 private:
  int dim_;
  std::span<const int> dims_;
  std::uint64_t first_;
  std::uint64_t first_replica_ = 0;
  std::int64_t first_row_ = 0;
  std::vector<RandomScope::Part> parts_;
  std::atomic<std::uint64_t> used_{0};
};

[[nodiscard]] State make_state(const char* name, const DeviceList& devices,
                               const DataParallelOptions& options);

/// The part of a batch of several processes that a call computes: some of its virtual replicas.
struct RankShare {
  std::vector<std::int64_t> rows;   ///< of each
  std::uint64_t first_replica = 0;  ///< in the whole batch, as the first row
  std::int64_t first_row = 0;
  TakeParts take;
};

/// The result of a replica that returns nothing.
struct Nothing {};
template <class R> [[nodiscard]] std::vector<R> one(R output) {
  std::vector<R> list;
  list.push_back(std::move(output));
  return list;
}

/// The arguments as one tree. Parameters among them are shared, not copied.
template <class... A> [[nodiscard]] std::tuple<std::decay_t<A>...> arguments(const A&... args) {
  const tree::Sharing sharing;
  return std::tuple<std::decay_t<A>...>(args...);
}
template <class T> [[nodiscard]] tree::Flat flat_of(const T& t) {
  if constexpr (tree::detail::Holds<T>) return tree::flatten(t);
  else return {};
}
[[noreturn]] void cannot_gather(const char* signature);

/// What becomes of the outputs. Only a tree of tensors can be gathered from several replicas.
enum class To : std::uint8_t { gather, keep };

/// One call: the batch and the module, flattened once, and the devices that get rows. Each member
/// function is a step, in the order in which operator() calls them. The module and the batch must
/// outlive it.
class Call {
 public:
  /// Throws DeviceError if a tensor of the module is not on the first device, ArgumentError inside
  /// of a replica of another DataParallel, and for outputs that cannot be gathered.
  template <class M, class I>
  Call(const State& state, const M& module, const I& batch, To outputs = To::gather,
       const RankShare* share = nullptr)
      : Call(state, tree::flatten(module), flat_of(batch), share) {
    check_tree<I>();
    using R = Output<M, I>;
    if constexpr (!std::is_void_v<R> && !Tree<R>)
      if (outputs == To::gather && !is_whole()) cannot_gather(braid::detail::signature<R>());
  }
  Call(const State& state, tree::Flat module, tree::Flat batch, const RankShare* share = nullptr);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// True if the module itself computes the whole batch.
  [[nodiscard]] bool is_whole() const noexcept;
  /// The module with the batch moved to its device.
  template <class M, class I> auto run_whole(const M& module, const I& batch);

  /// The part of the batch of each replica, on its device.
  template <class I> [[nodiscard]] std::vector<I> scatter(const I& batch) {
    return with_each(batch, scatter_batch());
  }
  /// A replica for each part; replica 0 shares its tensors with the module.
  template <class M> [[nodiscard]] std::vector<M> replicate(const M& module) {
    check_tree<M>();
    return with_each(module, replicate_module());
  }
  /// Runs all replicas at the same time. Then merges the buffers that they have written. Frees the
  /// replicas and their parts of the batch before the outputs are gathered.
  template <class M, class I>
  auto parallel_apply(const M& module, std::vector<M> replicas, std::vector<I> inputs);
  /// The replicas' outputs as one tree on the output device.
  template <class R>
  auto gather(const std::vector<R>& outputs) const
      -> std::conditional_t<std::is_same_v<R, Nothing>, void, R>;
  /// The output of run_whole on the output device.
  template <class R> auto move_output(R output) const;

 private:
  [[nodiscard]] std::vector<std::vector<Tensor>> scatter_batch();
  [[nodiscard]] std::vector<std::vector<Tensor>> replicate_module();
  void merge_buffers() const;
  void end_replicas() noexcept;
  [[nodiscard]] std::vector<Tensor> gather_outputs(std::span<const tree::Flat> outputs) const;
  [[nodiscard]] Device output_device() const;

  struct BufferState {
    Tensor tensor;
    std::uint64_t version;
  };
  std::shared_ptr<State::Kept> kept_;
  std::span<const Device> all_devices_;
  const CallOptions& options_;
  tree::Flat module_, batch_;
  const RankShare* share_;       // null: the whole batch
  std::vector<Device> devices_;  // of each replica
  RandomSplit random_;
  ReplicaCache* cache_ = nullptr;                  // locked while replicas use its copies
  std::vector<std::vector<BufferState>> buffers_;  // [replica][buffer], before the call
};

template <class M, class I> auto Call::run_whole(const M& module, const I& batch) {
  const Device device = all_devices_.front();
  [[maybe_unused]] const auto scope = random_.scope(0);
  const trace::Span span("forward", trace::Phase::compute, device, 0, trace::Span::Memory::yes);
  // A module may return a reference to its argument, so the output is made while that lives.
  const auto run = [&]() -> Output<M, I> {
    return all_on(batch_, device) ? call(module, batch) : call(module, moved_to(batch, device));
  };
  if constexpr (std::is_void_v<Output<M, I>>) return run(), Nothing();
  else return run();
}

template <class M, class I>
auto Call::parallel_apply(const M& module, std::vector<M> replicas, std::vector<I> inputs) {
  // checkpointed functions may refer to them until backward
  auto alive = std::make_shared<std::vector<M>>(std::move(replicas));
  struct Scope {
    RandomSplit::Scope random;
    braid::detail::KeepForCheckpoint keep;
  };
  const auto scope = [&](std::size_t i) {
    return Scope{random_.scope(i), braid::detail::KeepForCheckpoint(alive)};
  };
  const bool is_virtual = options_.virtual_replicas > 0;
  const auto finish = [&] {
    merge_buffers();
    if constexpr (SyncsState<M>) module.sync_state(std::span<const M>(*alive));
    const std::size_t count = alive->size();
    inputs.clear();
    alive.reset();  // before another call may use the cached copies
    end_replicas();
    return count;
  };
  if constexpr (std::is_void_v<Output<M, I>>) {
    apply_within(*alive, inputs, devices_, scope, true, is_virtual);
    return std::vector<Nothing>(finish());
  } else {
    auto outputs = apply_within(*alive, inputs, devices_, scope, true, is_virtual);
    finish();
    return outputs;
  }
}

template <class R>
auto Call::gather(const std::vector<R>& outputs) const
    -> std::conditional_t<std::is_same_v<R, Nothing>, void, R> {
  if constexpr (std::is_same_v<R, Nothing>) {
    return;
  } else if constexpr (Tree<R>) {
    const std::vector<Tensor> leaves = gather_outputs(flatten_each(outputs));
    return with_leaves(outputs.front(), leaves);
  } else {
    cannot_gather(braid::detail::signature<R>());
  }
}

template <class R> auto Call::move_output(R output) const {
  if constexpr (std::is_same_v<R, Nothing>) return;
  else if constexpr (tree::detail::Holds<R>)
    return is_on(output, output_device()) ? output : moved_to(output, output_device());
  else return output;
}

}  // namespace detail
}  // namespace braid::parallel
