#pragma once
#include <atomic>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include <braid/core/random.hpp>
#include <braid/core/trace.hpp>
#include <braid/core/tree.hpp>
#include <braid/nn/module.hpp>
#include <braid/nn/walks.hpp>
#include <braid/parallel/gather.hpp>
#include <braid/parallel/loss.hpp>
#include <braid/parallel/parallel_apply.hpp>
#include <braid/parallel/replicate.hpp>
#include <braid/parallel/scatter.hpp>

namespace braid::parallel {

template <class M> struct DataParallel;

/// A module that collects values from plain fields (counters, flags) of its replicas.
/// `void sync_state(std::span<const M> replicas) const` is called on the wrapped module after each
/// call over several devices or shards, before outputs are gathered. It is not called after a call
/// that failed, nor with one device and no shards, where the module itself runs. The fields that it
/// sets must be `mutable`, like those that a forward sets.
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

/// Where the optimizer's step runs.
enum class Update : std::uint8_t {
  /// on the module's own parameters; the next call sends changed ones to the other devices
  first,
  /// on every device, by LocalUpdate: training sends no parameters. Calls must not overlap if other
  /// code writes the weights meanwhile
  local
};

/// The options of DataParallel and data_parallel besides the devices. ScatterOptions explains how
/// the batch is split (split, chunk_sizes, weights). On one device the batch is split only into
/// shards.
struct DataParallelOptions {
  /// the device of the gathered output; default: the first device
  std::optional<Device> output_device = {};
  int dim = 0;  ///< the dim along which the batch is split and outputs are gathered
  /// the dim along which each argument is split; arguments beyond the list use `dim`
  std::vector<int> dims = {};
  /// for an output that is a tuple: the dim along which each element is gathered; elements beyond
  /// the list use `dim`
  std::vector<int> output_dims = {};
  Split split = Split::ceil;
  std::vector<std::int64_t> chunk_sizes = {};
  std::vector<double> weights = {};
  MergeBuffers merge_buffers = MergeBuffers::replica0;
  /// keep the copies of the weights between calls, and copy only what has changed; DataParallel
  /// only
  bool cache = true;
  /// Above 0: the results have the same bits for any number of devices, including one. The batch is
  /// split into min(shards, rows) virtual replicas by the balanced rule. Each is computed
  /// separately, and every sum over the batch (gradients, BatchNorm's statistics) is added in the
  /// fixed order of Communicator::reduce. A device computes consecutive shards sequentially: the
  /// pieces of work are smaller, which costs speed. Random tensors that the model creates, and sums
  /// that it computes over its input, are then per shard. Cannot be combined with chunk_sizes or
  /// weights. Requires at least one device.
  int shards = 0;
  Update update = Update::first;  ///< DataParallel only; local cannot be combined with shards
  /// The maximum bytes of gradients that are summed in one call. On CUDA devices each call starts
  /// as soon as its gradients are ready, on separate streams, while the rest of backward continues.
  /// With NCCL only the other devices continue: the first device's thread waits for the library.
  /// With Update::local the calls come after backward. On the CPU, where all cores already compute,
  /// one call at the end makes all sums.
  std::size_t bucket_bytes = kBucketBytes;
};

namespace detail {

/// True if the type contains a DataParallel.
template <class T> constexpr bool holds_data_parallel();
template <class T> struct HoldsDataParallel {
  static constexpr bool elements() { return false; }
};
template <template <class...> class C, class... E> struct HoldsDataParallel<C<E...>> {
  static constexpr bool elements() {
    return (holds_data_parallel<std::remove_cvref_t<E>>() || ...);
  }
};
template <template <class, std::size_t> class Array, class E, std::size_t N>
struct HoldsDataParallel<Array<E, N>> : HoldsDataParallel<std::tuple<E>> {};
template <class T> inline constexpr bool is_data_parallel = false;
template <class M> inline constexpr bool is_data_parallel<DataParallel<M>> = true;
template <class T> constexpr bool holds_data_parallel() {
  if constexpr (is_data_parallel<T>) return true;
  else if constexpr (tree::IsTensor<T> || !tree::detail::is_tree<T>()) return false;
  else if constexpr (tree::Struct<T>)
    return HoldsDataParallel<decltype(std::declval<T&>().braid_fields())>::elements();
  else if constexpr (tree::Tuple<T>) return HoldsDataParallel<T>::elements();
  else if constexpr (tree::Map<T>) return holds_data_parallel<typename T::mapped_type>();
  else return holds_data_parallel<typename T::value_type>();
}
template <class M> constexpr void check_not_nested() {
  static_assert(
      !holds_data_parallel<M>(),
      "braid: a DataParallel inside a DataParallel: wrap the whole model, or only its parts");
}

[[nodiscard]] ScatterOptions scatter_options(const DataParallelOptions& options);
/// Throws unless all devices and the output device exist, each device is listed once, and the
/// options fit together.
void check_group(const char* op, std::span<const Device> devices,
                 const DataParallelOptions& options);
/// Warns, once per process, if one GPU will slow down the others and no row counts are set.
void warn_of_unequal(std::span<const Device> devices, const DataParallelOptions& options);
void check_not_local(const DataParallelOptions& options);
void check_local(const DataParallelOptions& options, std::span<const Device> devices);
/// Throws DeviceError unless all tensors of the module are on the first device.
void check_placement(const tree::Flat& module, Device first);
/// Throws ArgumentError if the caller runs inside a replica. This finds nested DataParallels that
/// check_not_nested cannot see in the types.
void check_outermost();
[[noreturn]] void cannot_gather(const char* signature);

/// Returns the arguments as one tree. Parameters among them are shared, not copied.
template <class... A> [[nodiscard]] std::tuple<std::decay_t<A>...> arguments(const A&... args) {
  const tree::Sharing sharing;
  return std::tuple<std::decay_t<A>...>(args...);
}

/// The random ops of one call, for any split: every replica draws from the streams that one
/// undivided call would take, for its own rows of the batch.
class RandomSplit {
 public:
  explicit RandomSplit(const DataParallelOptions& options);
  ~RandomSplit();
  RandomSplit(const RandomSplit&) = delete;
  RandomSplit& operator=(const RandomSplit&) = delete;
  /// Adds the next replica. Its rows are those of its first tensor that has the split dim.
  void add(const tree::Flat& input);
  /// Sets the random state of a replica for the duration of its call.
  class Scope {
   public:
    Scope(RandomSplit& split, std::size_t replica)
        : split_(split), forward_(split.first_, split.parts_[replica]) {}
    ~Scope();

   private:
    RandomSplit& split_;
    RandomForward forward_;
  };
  [[nodiscard]] Scope scope(std::size_t replica) { return Scope(*this, replica); }
  [[nodiscard]] std::int64_t rows(std::size_t replica) const { return parts_[replica].rows; }

 private:
  int dim_;
  std::span<const int> dims_;
  std::uint64_t first_;
  std::vector<RandomForward::Part> parts_;
  std::atomic<std::uint64_t> used_{0};
};
template <class I> void add_rows(RandomSplit& random, const I& input) {
  if constexpr (tree::detail::Holds<I>) random.add(tree::flatten(input));
  else random.add(tree::Flat());
}

/// Compares the buffers of the replicas before and after a call, and merges them.
class BufferMerge {
 public:
  BufferMerge();
  ~BufferMerge();
  BufferMerge(const BufferMerge&) = delete;
  BufferMerge& operator=(const BufferMerge&) = delete;
  /// Records the buffers of a replica before the call. Merging needs at least two replicas.
  void add(const tree::Flat& replica);
  [[nodiscard]] bool any() const noexcept;
  /// Writes the mean into each of the module's buffers that any replica has written.
  void finish(const tree::Flat& module, const RandomSplit& rows) const;

 private:
  struct Copy {
    Tensor tensor;
    std::uint64_t version;
  };
  std::vector<std::vector<Copy>> replicas_;  // [replica][buffer]
};

/// The cache of one DataParallel. A copy of the DataParallel gets a separate cache.
class CacheOwner {
 public:
  CacheOwner();
  CacheOwner(const CacheOwner&);
  CacheOwner(CacheOwner&&) noexcept;
  CacheOwner& operator=(const CacheOwner& other);
  CacheOwner& operator=(CacheOwner&&) noexcept;
  ~CacheOwner();
  [[nodiscard]] const std::shared_ptr<ReplicaCache>& get() const noexcept { return cache_; }
  [[nodiscard]] ReplicateBytes last() const;

 private:
  std::shared_ptr<ReplicaCache> cache_;
};

/// The weights of one DataParallel with Update::local. A copy of the DataParallel gets separate
/// ones.
class LocalOwner {
 public:
  LocalOwner();  ///< empty, for the other updates
  LocalOwner(const std::vector<Device>& devices, std::size_t bucket_bytes);
  LocalOwner(const LocalOwner&);
  LocalOwner(LocalOwner&&) noexcept;
  LocalOwner& operator=(const LocalOwner& other);
  LocalOwner& operator=(LocalOwner&&) noexcept;
  ~LocalOwner();
  [[nodiscard]] LocalReplicas* get() const noexcept { return replicas_.get(); }
  /// Updates the copies from the module, which must be on the first device, and returns them.
  [[nodiscard]] const std::shared_ptr<LocalReplicas>& refreshed(const tree::Flat& module) const;
  [[nodiscard]] ReplicateBytes last() const;
  void zero_grad() const noexcept;

 private:
  std::shared_ptr<LocalReplicas> replicas_;
};

/// Locks a cache for one call. Null if there is no cache or another call uses it, because only one
/// call at a time may write the cached copies.
class CacheUse {
 public:
  explicit CacheUse(std::shared_ptr<ReplicaCache> cache);
  ~CacheUse();
  CacheUse(const CacheUse&) = delete;
  CacheUse& operator=(const CacheUse&) = delete;
  [[nodiscard]] ReplicaCache* get() const noexcept { return cache_.get(); }

 private:
  std::shared_ptr<ReplicaCache> cache_;
};

/// Splits the input into parts: one for each device that gets rows, or one for each shard.
[[nodiscard]] Shards parts_of(const tree::Flat& input, std::span<const Device> devices,
                              const DataParallelOptions& options);

/// Gathers the outputs of the replicas as the options say.
[[nodiscard]] std::vector<Tensor> join_outputs(std::span<const tree::Flat> outputs,
                                               Device output_device,
                                               const DataParallelOptions& options);
template <class R>
[[nodiscard]] R joined_outputs(const std::vector<R>& outputs, Device output_device,
                               const DataParallelOptions& options) {
  // throws for an empty list
  const std::vector<Tensor> leaves = join_outputs(flatten_each(outputs), output_device, options);
  return with_leaves(outputs.front(), leaves);
}

/// The options of a DataParallel, shared by its copies. They are held by pointer so that most
/// programs need not compile the code that copies them.
[[nodiscard]] std::shared_ptr<const DataParallelOptions> kept_options(
    const DataParallelOptions& options);
[[nodiscard]] std::shared_ptr<const DataParallelOptions> kept_options(
    std::optional<Device> output_device, int dim);

/// Scatter, replicate, parallel_apply. Returns the replicas' outputs, each on its device.
template <class M, class I>
auto replica_outputs(const M& module, const I& input, const std::vector<Device>& devices,
                     const DataParallelOptions& options, const CacheOwner* owner,
                     LocalReplicas* local) {
  using R = Output<M, I>;
  check_tree<I>();
  check_outermost();
  const bool shards = options.shards > 0;
  RandomSplit random(options);
  const Shards parts = parts_of(tree::flatten(input), devices, options);
  const std::vector<Device>& used = parts.devices;
  const std::vector<I> inputs = with_each(input, parts.leaves);
  for (const I& part : inputs) add_rows(random, part);
  const auto within = [&](std::size_t i) { return random.scope(i); };
  const CacheUse cache(owner && options.cache ? owner->get() : nullptr);
  const std::vector<M> replicas =
      replicas_of(module, used, {cache.get(), local, shards, options.bucket_bytes});
  BufferMerge buffers;
  if (options.merge_buffers != MergeBuffers::replica0)
    for (const M& replica : replicas) buffers.add(tree::flatten(replica));
  const auto merge = [&] {
    if (buffers.any()) buffers.finish(tree::flatten(module), random);
    if constexpr (SyncsState<M>) module.sync_state(std::span<const M>(replicas));
  };
  if constexpr (std::is_void_v<R>) {
    apply_within(replicas, inputs, used, within, true, shards);
    merge();
  } else {
    auto outputs = apply_within(replicas, inputs, used, within, true, shards);
    merge();
    return outputs;
  }
}

/// The call on one device: moves the arguments there and calls the module.
template <class M, class I>
auto whole_call(const M& module, const I& input, Device device, const DataParallelOptions& options)
    -> Output<M, I> {
  RandomSplit random(options);
  add_rows(random, input);
  [[maybe_unused]] const auto scope = random.scope(0);
  const trace::Span span("forward", trace::Phase::compute, device, 0, trace::Span::Memory::yes);
  return is_on(input, device) ? call(module, input) : call(module, moved_to(input, device));
}

/// With one device and no shards, calls the module itself. Otherwise: scatter, replicate,
/// parallel_apply, gather.
template <class M, class I>
Output<M, I> split_call(const M& module, const I& input, const std::vector<Device>& devices,
                        const DataParallelOptions& options, const CacheOwner* owner = nullptr,
                        LocalReplicas* local = nullptr) {
  using R = Output<M, I>;
  check_placement(tree::flatten(module), devices.front());
  const Device output_device = options.output_device.value_or(devices.front());
  if (devices.size() == 1 && options.shards == 0) {
    if constexpr (tree::detail::Holds<R>) {
      R output = whole_call(module, input, devices.front(), options);
      return is_on(output, output_device) ? output : moved_to(output, output_device);
    } else {
      return whole_call(module, input, devices.front(), options);
    }
  }
  if constexpr (std::is_void_v<R>) replica_outputs(module, input, devices, options, owner, local);
  else if constexpr (Tree<R>)
    return joined_outputs(replica_outputs(module, input, devices, options, owner, local),
                          output_device, options);
  else cannot_gather(braid::detail::signature<R>());
}

}  // namespace detail

/// Splits the batch over devices, runs a replica of the module on each device in parallel, and
/// gathers the outputs: `DataParallel model(Net{});`.
///
/// Forward     scatter → replicate on the devices that get rows → parallel_apply → gather. With one
///             device: calls the module with the arguments moved there. With an empty list: calls
///             the module with the arguments unchanged.
/// Placement   with several devices the module stays where it is and must be on the first one:
///             `to(model, device)`. With one device the constructor moves it there.
/// Arguments   any number of trees (split) and plain values (passed to every replica). Their
///             tensors may be on any device.
/// Output      a tree of tensors on output_device, by default the first device. With several
///             devices other types cannot be gathered.
/// Gradient    for a loss of the gathered output: the same as on one device, summed over the
///             replicas into the module's own parameters
/// Throws      at construction: DeviceError for a device that does not exist or is listed twice.
///             At each call: DeviceError
///             `module must have its parameters and buffers on device cpu:0 (device_ids[0]) but
///             found one of them on device: cpu:1 (parameter 'fc.weight')`; ReplicaError; what
///             scatter and gather throw; ArgumentError inside a replica of another DataParallel
///             if the type of the model did not show it.
///             In a backward: ReplicaError for an error in an op that a replica recorded.
/// Notes       values that replicas write to plain fields are lost, except with SyncsState.
///             In-place writes of replica 0 to buffers are kept. A copy has separate weights.
///             `DataParallel(DataParallel(x))` is a copy of the inner one; nesting does not
///             compile.
template <class M> struct DataParallel : nn::Module {
  M module;

  explicit DataParallel(M&& m, const DeviceList& on = devices(),
                        std::optional<Device> output_device = {}, int dim = 0)
      : DataParallel(std::move(m), on, detail::kept_options(output_device, dim)) {}
  DataParallel(M&& m, const DeviceList& on, const DataParallelOptions& options)
      : DataParallel(std::move(m), on, detail::kept_options(options)) {}
  /// Deleted: move the model in, or clone it first. `DataParallel(std::move(model))`,
  /// `DataParallel(clone(model))`.
  template <class U, class... A>
    requires(std::is_lvalue_reference_v<U> && std::same_as<std::remove_cvref_t<U>, M>)
  explicit DataParallel(U&&, A&&...) = delete;

  template <class... A>
    requires std::invocable<const M&, const std::decay_t<A>&...>
  auto operator()(const A&... args) const {
    if (devices_.empty()) return module(args...);
    return detail::split_call(module, detail::arguments(args...), devices_, *options_, &cache_,
                              local_.get());
  }

  /// Returns the replicas' outputs without gathering them. Output i is on the i-th device and may
  /// have any type. With one device or none there is one output; with shards, one for each shard.
  /// Computing losses where the data is avoids gathering large outputs: `total(model.replicas(x,
  /// y), device).mean()` is the exact loss of the batch.
  template <class... A>
    requires std::invocable<const M&, const std::decay_t<A>&...>
  auto replicas(const A&... args) const {
    using R = std::decay_t<std::invoke_result_t<const M&, const std::decay_t<A>&...>>;
    static_assert(!std::is_void_v<R>,
                  "braid: replicas() gives what the replicas return, and these return nothing");
    if (devices_.empty()) return one(module(args...));
    const auto input = detail::arguments(args...);
    detail::check_placement(tree::flatten(module), devices_.front());
    if (devices_.size() == 1 && options_->shards == 0)
      return one(detail::whole_call(module, input, devices_.front(), *options_));
    return detail::replica_outputs(module, input, devices_, *options_, &cache_, local_.get());
  }

  /// Accesses the module like a pointer: `model->fc.weight`.
  [[nodiscard]] const M* operator->() const noexcept { return &module; }
  [[nodiscard]] M* operator->() noexcept { return &module; }

  /// Returns the bytes of weights that the last call sent to the other devices, and those that were
  /// already there. Requires options.cache or Update::local. Calls that begin while another one
  /// runs are not counted.
  [[nodiscard]] ReplicateBytes replicate_bytes() const {
    ReplicateBytes bytes = cache_.last();
    bytes += local_.last();
    return bytes;
  }

  /// Used by LocalUpdate. Throws ArgumentError without `update = Update::local`.
  [[nodiscard]] std::shared_ptr<detail::LocalReplicas> local_replicas() const {
    detail::check_local(*options_, devices_);
    const tree::Flat flat = tree::flatten(module);
    detail::check_placement(flat, devices_.front());
    return local_.refreshed(flat);
  }

  /// Removes all gradients: the module's, and with Update::local also those on the other devices.
  /// `zero_grad(model)` does the same; `zero_grad(model.module)` leaves those of the other devices.
  void zero_grad() const { braid::zero_grad(*this); }
  /// Called by braid::zero_grad of a tree that contains this object.
  void braid_clear_gradients() const noexcept { local_.zero_grad(); }

  BRAID_FIELDS(module)

 private:
  DataParallel(M&& m, const DeviceList& on, std::shared_ptr<const DataParallelOptions> options)
      : module(std::move(m)), devices_(on.list()), options_(std::move(options)) {
    detail::check_not_nested<M>();
    detail::check_group("DataParallel", devices_, *options_);
    detail::warn_of_unequal(devices_, *options_);
    if (devices_.size() == 1) to(module, devices_.front());
    if (options_->update == Update::local)
      local_ = detail::LocalOwner(devices_, options_->bucket_bytes);
  }
  template <class R> static std::vector<R> one(R output) {
    std::vector<R> list;
    list.push_back(std::move(output));
    return list;
  }

  std::vector<Device> devices_;
  std::shared_ptr<const DataParallelOptions> options_;
  detail::CacheOwner cache_;
  detail::LocalOwner local_;
};
template <class M> DataParallel(M) -> DataParallel<M>;
template <class M> DataParallel(M, DeviceList) -> DataParallel<M>;
template <class M> DataParallel(M, DeviceList, std::optional<Device>) -> DataParallel<M>;
template <class M> DataParallel(M, DeviceList, std::optional<Device>, int) -> DataParallel<M>;
template <class M> DataParallel(M, DeviceList, DataParallelOptions) -> DataParallel<M>;

/// DataParallel as a function, for a module that is already on the first device. An input that is a
/// std::tuple is the list of arguments; any other input is the only argument.
template <class M, class I>
auto data_parallel(const M& module, const I& input, const DeviceList& on = devices(),
                   DataParallelOptions options = {}) {
  detail::check_not_nested<M>();
  detail::check_group("data_parallel", on.list(), options);
  detail::check_not_local(options);
  if (on.list().empty()) return static_cast<detail::Output<M, I>>(detail::call(module, input));
  if constexpr (detail::is_tuple<I>) return detail::split_call(module, input, on.list(), options);
  else return detail::split_call(module, detail::arguments(input), on.list(), options);
}
template <class M, class I>
auto data_parallel(const M& module, const I& input, const DeviceList& on,
                   std::optional<Device> output_device, int dim = 0) {
  return data_parallel(module, input, on,
                       DataParallelOptions{.output_device = output_device, .dim = dim});
}

}  // namespace braid::parallel
