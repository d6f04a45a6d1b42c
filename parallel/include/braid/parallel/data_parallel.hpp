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

/// A module that wants what its replicas have in plain fields (counters, flags) when they have
/// ended: `void sync_state(std::span<const M> replicas) const` is called on the wrapped module
/// after each call over several devices, or shards, before outputs are joined; not after one that
/// failed. On one device the module itself ran, and has them. What it sets is `mutable`, as what a
/// forward sets.
template <class M>
concept SyncsState =
    requires(const M& module, std::span<const M> replicas) { module.sync_state(replicas); };

/// What becomes of the buffers that replicas write in training (the running statistics of
/// BatchNorm).
enum class MergeBuffers : std::uint8_t {
  replica0,  ///< those of replica 0 stay, the others are lost
  /// floating point ones become the mean over the replicas, weighted by their rows; others are
  /// replica 0's
  mean
};

/// Where the optimizer's step happens.
enum class Update : std::uint8_t {
  /// on the module's own parameters; the other devices get what has changed at the next call
  first,
  /// on every device, by LocalUpdate: no parameter is sent in training. Of weights that others
  /// write meanwhile, one call at a time
  local
};

/// What DataParallel and data_parallel can be told beside the devices. How the batch is cut (split,
/// chunk_sizes, weights): ScatterOptions. On one device nothing is cut, but in shards.
struct DataParallelOptions {
  /// where the outputs are joined; default: the first device
  std::optional<Device> output_device = {};
  int dim = 0;  ///< the dimension that is split and joined
  /// that each argument is split along; those beyond the list along `dim`
  std::vector<int> dims = {};
  /// that each element of an output which is a tuple is joined along; those beyond the list along
  /// `dim`
  std::vector<int> output_dims = {};
  Split split = Split::ceil;
  std::vector<std::int64_t> chunk_sizes = {};
  std::vector<double> weights = {};
  MergeBuffers merge_buffers = MergeBuffers::replica0;
  /// DataParallel keeps the copies of the weights between its calls, and copies anew what has
  /// changed
  bool cache = true;
  /// Above 0: the same bits for any number of devices, one included. The batch is cut in
  /// min(shards, rows) chunks by the balanced rule, each is computed by itself, and every sum over
  /// the batch (gradients, BatchNorm's statistics) is taken over the shards in the fixed order of
  /// Communicator::reduce. A device computes consecutive shards, one after the other: smaller
  /// pieces of work, the price of it. Random numbers and sums that the model itself takes over its
  /// input are then a shard's. Not with chunk_sizes or weights; needs a device at least.
  int shards = 0;
  Update update = Update::first;  ///< DataParallel alone; local: not with shards
  /// Most bytes of gradients that are added in one call. On CUDA devices each call is made as soon
  /// as its gradients are there, on streams of their own, while the rest of backward goes on (over
  /// NCCL that of the other devices: the first one's thread waits for the library); with
  /// Update::local the calls come after backward. On the CPU, where all cores compute, the sums are
  /// one call at the end.
  std::size_t bucket_bytes = kBucketBytes;
};

namespace detail {

/// True if a DataParallel is somewhere in the type.
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
/// Devices that exist, each once; the output device too.
void check_group(const char* op, std::span<const Device> devices,
                 const DataParallelOptions& options);
/// Warns, once per process, of GPUs of which one will hold up another, where the rows are not
/// chosen.
void warn_of_unequal(std::span<const Device> devices, const DataParallelOptions& options);
void check_not_local(const DataParallelOptions& options);
void check_local(const DataParallelOptions& options, std::span<const Device> devices);
/// All tensors of the module are on the first device, else DeviceError.
void check_placement(const tree::Flat& module, Device first);
/// Not inside of a replica, where the type did not show it.
void check_outermost();
[[noreturn]] void cannot_gather(const char* signature);

/// The arguments as one tree. Parameters among them are shared, not copied.
template <class... A> [[nodiscard]] std::tuple<std::decay_t<A>...> arguments(const A&... args) {
  const tree::Sharing sharing;
  return std::tuple<std::decay_t<A>...>(args...);
}

/// The random ops of one call, whatever it is split into: every replica draws from the streams that
/// one undivided call would take, for its own rows of the batch.
class RandomSplit {
 public:
  explicit RandomSplit(const DataParallelOptions& options);
  ~RandomSplit();
  RandomSplit(const RandomSplit&) = delete;
  RandomSplit& operator=(const RandomSplit&) = delete;
  /// The rows of the next replica, those of its first tensor that has the dimension.
  void add(const tree::Flat& input);
  /// A replica's part, while its call lives.
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

/// The buffers of the replicas before a call, and what they have become after it.
class BufferMerge {
 public:
  BufferMerge();
  ~BufferMerge();
  BufferMerge(const BufferMerge&) = delete;
  BufferMerge& operator=(const BufferMerge&) = delete;
  /// What is never added is never merged.
  void add(const tree::Flat& replica);
  [[nodiscard]] bool any() const noexcept;
  /// Writes the means into the module's buffers that any replica has written.
  void finish(const tree::Flat& module, const RandomSplit& rows) const;

 private:
  struct Copy {
    Tensor tensor;
    std::uint64_t version;
  };
  std::vector<std::vector<Copy>> replicas_;  // [replica][buffer]
};

/// The cache of one DataParallel: a copy of that one has a cache of its own.
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

/// The weights of one DataParallel with Update::local; a copy of that one has its own.
class LocalOwner {
 public:
  LocalOwner();  ///< none, for the other updates
  LocalOwner(const std::vector<Device>& devices, std::size_t bucket_bytes);
  LocalOwner(const LocalOwner&);
  LocalOwner(LocalOwner&&) noexcept;
  LocalOwner& operator=(const LocalOwner& other);
  LocalOwner& operator=(LocalOwner&&) noexcept;
  ~LocalOwner();
  [[nodiscard]] LocalReplicas* get() const noexcept { return replicas_.get(); }
  /// Up to date with the module, which has to be on the first of the devices.
  [[nodiscard]] const std::shared_ptr<LocalReplicas>& refreshed(const tree::Flat& module) const;
  [[nodiscard]] ReplicateBytes last() const;
  void zero_grad() const noexcept;

 private:
  std::shared_ptr<LocalReplicas> replicas_;
};

/// A cache for the time of a call; null where there is none, or while another call uses it: what is
/// in its copies may be written by one call at a time.
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

/// A replica's part of the input, for each: of each device that gets rows, or of each shard.
[[nodiscard]] Shards parts_of(const tree::Flat& input, std::span<const Device> devices,
                              const DataParallelOptions& options);

/// The outputs of the replicas as one, where and how the options say.
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

/// The options of a DataParallel, shared by its copies. Not a member by value: most programs then
/// never compile what copies them.
[[nodiscard]] std::shared_ptr<const DataParallelOptions> kept_options(
    const DataParallelOptions& options);
[[nodiscard]] std::shared_ptr<const DataParallelOptions> kept_options(
    std::optional<Device> output_device, int dim);

/// Scatter, replicate, parallel_apply: the outputs of the replicas, each on its device.
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

/// One device: the module with its arguments moved there.
template <class M, class I>
auto whole_call(const M& module, const I& input, Device device, const DataParallelOptions& options)
    -> Output<M, I> {
  RandomSplit random(options);
  add_rows(random, input);
  [[maybe_unused]] const auto scope = random.scope(0);
  const trace::Span span("forward", trace::Phase::compute, device, 0, trace::Span::Memory::yes);
  return is_on(input, device) ? call(module, input) : call(module, moved_to(input, device));
}

/// One device and no shards: the module itself. Else: scatter, replicate, parallel_apply, gather.
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

/// Splits the batch over devices, runs a replica of the module on each at the same time, and joins
/// the outputs: `DataParallel model(Net{});`.
///
/// Forward     scatter → replicate on the devices that get rows → parallel_apply → gather. With one
///             device, the module itself with the arguments moved there; with an empty list, the
///             module itself with the arguments as they are
/// Placement   with several devices the module stays where it is, and has to be on the first one:
///             `to(model, device)`; with one it is moved there at construction
/// Arguments   any number of trees (split) and plain values (given to every replica); their tensors
///             may be on any device
/// Output      a tree of tensors on output_device, which is the first device unless told otherwise;
///             of several devices nothing else can be joined
/// Gradient    of a loss of the joined output: the same as on one device, summed over the replicas
///             into the module's own parameters
/// Throws      at construction: DeviceError for devices that do not exist or are there twice. At
///             each call: DeviceError `module must have its parameters and buffers on device cpu:0
///             (device_ids[0]) but found one of them on device: cpu:1 (parameter 'fc.weight')`;
///             ReplicaError; what scatter and gather throw. In a backward: ReplicaError for what
///             goes wrong in an op that a replica has recorded ArgumentError in a replica of
///             another DataParallel, where the type of the model did not show it
/// Notes       what replicas write to plain fields is lost, but see SyncsState; what replica 0
///             writes in place to buffers stays. A copy has weights of its own.
///             `DataParallel(DataParallel(x))` is a copy of the inner one; nesting is an error at
///             compile time
template <class M> struct DataParallel : nn::Module {
  M module;

  explicit DataParallel(M&& m, const DeviceList& on = devices(),
                        std::optional<Device> output_device = {}, int dim = 0)
      : DataParallel(std::move(m), on, detail::kept_options(output_device, dim)) {}
  DataParallel(M&& m, const DeviceList& on, const DataParallelOptions& options)
      : DataParallel(std::move(m), on, detail::kept_options(options)) {}
  /// A model is moved in, or cloned before: `DataParallel(std::move(model))`,
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

  /// The replicas' outputs, not joined: output i is on the i-th device, and may be of any type. One
  /// device or none gives one output; with shards there is one for each.
  /// Losses taken where the data is need no gather of large outputs:
  /// `total(model.replicas(x, y), device).mean()` is the exact loss of the batch.
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

  /// The module, as `->` of a pointer to it: `model->fc.weight`.
  [[nodiscard]] const M* operator->() const noexcept { return &module; }
  [[nodiscard]] M* operator->() noexcept { return &module; }

  /// What the last call sent to the other devices, and what it found there (with options.cache, or
  /// Update::local; calls that begin while another one runs are not seen).
  [[nodiscard]] ReplicateBytes replicate_bytes() const {
    ReplicateBytes bytes = cache_.last();
    bytes += local_.last();
    return bytes;
  }

  /// For LocalUpdate. Throws ArgumentError without `update = Update::local`.
  [[nodiscard]] std::shared_ptr<detail::LocalReplicas> local_replicas() const {
    detail::check_local(*options_, devices_);
    const tree::Flat flat = tree::flatten(module);
    detail::check_placement(flat, devices_.front());
    return local_.refreshed(flat);
  }

  /// Removes all gradients: the module's, and with Update::local those that wait on the other
  /// devices. `zero_grad(model)` calls it; of the module alone it would leave these.
  void zero_grad() const { braid::zero_grad(*this); }
  /// What zero_grad of a tree calls where it finds it: see braid::zero_grad.
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

/// DataParallel as a function, for a module that is already on the first device; an input that is a
/// std::tuple is the list of arguments, any other the one argument.
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
