#pragma once
#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/core/check_model.hpp>
#include <braid/nn/module.hpp>
#include <braid/nn/walks.hpp>
#include <braid/parallel/devices.hpp>
#include <braid/parallel/internal/call.hpp>
#include <braid/parallel/internal/nesting.hpp>
#include <braid/parallel/internal/removed.hpp>

namespace braid::parallel {

/// The options of DataParallel and data_parallel besides the devices. ScatterOptions explains how
/// the batch is split (split, chunk_sizes, weights). With one device nothing is split.
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
  bool cache = true;  ///< keep the copies of the weights, and copy only what has changed
  detail::RemovedShards shards = {};
  detail::RemovedUpdate update = {};
  /// The maximum bytes of gradients that are summed in one call. On CUDA devices a call starts as
  /// soon as its gradients are ready; docs/notes/data_parallel.md says when elsewhere.
  std::size_t bucket_bytes = kBucketBytes;
};

namespace detail {
template <class M> constexpr void refuse_lvalue() {
  static_assert(!braid::detail::is_sound<M>(),
                "braid: a DataParallel owns its model: write std::move(model), or clone(model)");
}
}  // namespace detail

/// Splits the batch over devices, runs a replica of the module on each at the same time, and
/// gathers the outputs.
///
///     parallel::DataParallel model(Net{});  // over all devices
///     optim::SGD optimizer(parameters(model), {.lr = 0.1});
///     cross_entropy(model(x), labels).backward();
///     optimizer.step();
///
/// Forward   scatter → replicate on the devices that get rows → parallel_apply → gather. With one
///           device: the module itself, with the arguments moved there. With an empty list: the
///           module itself, with the arguments as they are
/// Device    with several devices the module stays where it is, and must be on the first one:
///           `to(model, device)`; with one device the constructor moves it there
/// Inputs    any number of trees (split) and plain values (given to every replica); their tensors
///           may be on any device
/// Output    a tree of tensors on output_device, by default the first device. Other outputs cannot
///           be gathered from several devices
/// Gradient  of a loss of the gathered output: the same as on one device, summed over the replicas
///           into the module's own parameters
/// Throws    at construction: DeviceError for devices that do not exist or appear twice. At each
///           call: DeviceError `module must have its parameters and buffers on device cpu:0
///           (device_ids[0]) but found one of them on device: cpu:1 (parameter 'fc.weight')`;
///           ReplicaError; what scatter and gather throw. In backward: ReplicaError for an error in
///           an op that a replica recorded. ArgumentError in a replica of another DataParallel, if
///           the type of the model did not show it
/// Notes     values that replicas write to plain fields are lost, unless the module has sync_state;
///           what replica 0 writes in place to buffers stays. A copy has separate weights. Nesting
///           is an error at compile time; `DataParallel(DataParallel(x))` is a copy
template <class M> struct DataParallel : nn::Module {
  static_assert((check_tree<M>(), true));
  M module;

  explicit DataParallel(M&& m, const DeviceList& on = devices(),
                        std::optional<Device> output_device = {}, int dim = 0)
      : DataParallel(std::move(m), on,
                     DataParallelOptions{.output_device = output_device, .dim = dim}) {}
  DataParallel(M&& m, const DeviceList& on, const DataParallelOptions& options)
      : DataParallel(detail::make_state("DataParallel", on, options), std::move(m)) {}
  /// A compile error. Move the model in, or clone it first: `DataParallel(std::move(model))`,
  /// `DataParallel(clone(model))`.
  template <class U, class... A>
    requires(std::is_lvalue_reference_v<U> && std::same_as<std::remove_cvref_t<U>, M>)
  explicit DataParallel(U&&, A&&...) : DataParallel(detail::State(), detail::no_model<M>()) {
    detail::refuse_lvalue<M>();
  }

  template <class... A>
    requires braid::detail::CallsCopies<M, std::decay_t<A>...>
  auto operator()(const A&... args) const {
    if (state_.devices().empty()) return module(args...);
    const auto batch = detail::arguments(args...);
    detail::Call call(state_, module, batch);
    if (call.is_whole()) return call.move_output(call.run_whole(module, batch));
    auto inputs = call.scatter(batch);
    auto replicas = call.replicate(module);  // as many as there are inputs
    const auto outputs = call.parallel_apply(module, std::move(replicas), std::move(inputs));
    return call.gather(outputs);
  }
  /// A compile error.
  template <class... A> braid::detail::NotCallable operator()(const A&...) const {
    braid::detail::check_calls_copies<M, std::decay_t<A>...>();
    return {};
  }

  /// The replicas' outputs, not gathered: output i is on the i-th device, and may be of any type.
  /// With one device or none there is one output. Losses that are computed where the outputs are
  /// need no gather of large outputs: `total(model.replicas(x, y), device).mean()` is the exact
  /// loss of the batch.
  template <class... A>
    requires braid::detail::CallsCopies<M, std::decay_t<A>...>
  auto replicas(const A&... args) const {
    using R = std::decay_t<std::invoke_result_t<const M&, const std::decay_t<A>&...>>;
    static_assert(!std::is_void_v<R>,
                  "braid: replicas() gives what the replicas return, and these return nothing");
    if (state_.devices().empty()) return detail::one(R(module(args...)));
    const auto batch = detail::arguments(args...);
    detail::Call call(state_, module, batch, detail::To::keep);
    if (call.is_whole()) return detail::one(call.run_whole(module, batch));
    auto inputs = call.scatter(batch);
    auto copies = call.replicate(module);
    return call.parallel_apply(module, std::move(copies), std::move(inputs));
  }

  /// The module, like `->` of a pointer to it: `model->fc.weight`.
  [[nodiscard]] const M* operator->() const noexcept { return &module; }
  [[nodiscard]] M* operator->() noexcept { return &module; }

  /// The bytes that the last call sent to the other devices, and those that were there already
  /// (with options.cache, or a ReplicatedOptimizer). A call that begins while another one runs is
  /// not counted.
  [[nodiscard]] ReplicateBytes replicate_bytes() const { return state_.last_bytes(); }

  /// Removes all gradients, also those on the other devices (ReplicatedOptimizer), which
  /// `zero_grad(model.module)` would leave. `zero_grad(model)` calls it.
  void zero_grad() const { braid::zero_grad(*this); }
  /// Called by zero_grad of a tree that contains this; see braid::zero_grad.
  void braid_clear_gradients() const noexcept { state_.zero_grad(); }
  /// For ReplicatedOptimizer.
  [[nodiscard]] const detail::State& state() const noexcept { return state_; }

  BRAID_FIELDS(module)

 protected:
  DataParallel(detail::State state, M&& m) : module(std::move(m)), state_(std::move(state)) {
    detail::check_not_nested<M>();
    if (state_.devices().size() == 1) to(module, state_.devices().front());
    state_.warn_of_imbalance();
  }

 private:
  detail::State state_;
};
template <class M> DataParallel(M) -> DataParallel<M>;
template <class M> DataParallel(M, DeviceList) -> DataParallel<M>;
template <class M> DataParallel(M, DeviceList, std::optional<Device>) -> DataParallel<M>;
template <class M> DataParallel(M, DeviceList, std::optional<Device>, int) -> DataParallel<M>;
template <class M> DataParallel(M, DeviceList, DataParallelOptions) -> DataParallel<M>;

/// DataParallel as a function, for a module that is already on the first device. A std::tuple is
/// the list of arguments; any other input is the only argument. Copies of the weights are not kept.
///
///     to(model, devices().front());
///     const Tensor scores = parallel::data_parallel(model, x);
template <class M, class I>
auto data_parallel(const M& module, const I& input, const DeviceList& on = devices(),
                   DataParallelOptions options = {}) {
  detail::check_not_nested<M>();
  if constexpr (detail::is_tuple<I>) {
    options.cache = false;
    const detail::State state = detail::make_state("data_parallel", on, options);
    if (on.list().empty()) return static_cast<detail::Output<M, I>>(detail::call(module, input));
    detail::Call call(state, module, input);
    if (call.is_whole()) return call.move_output(call.run_whole(module, input));
    auto inputs = call.scatter(input);
    auto replicas = call.replicate(module);
    const auto outputs = call.parallel_apply(module, std::move(replicas), std::move(inputs));
    return call.gather(outputs);
  } else if constexpr (braid::detail::CallsCopies<M, I>) {
    return data_parallel(module, detail::arguments(input), on, std::move(options));
  } else {
    braid::detail::check_calls_copies<M, I>();
    return braid::detail::NotCallable();
  }
}
template <class M, class I>
auto data_parallel(const M& module, const I& input, const DeviceList& on,
                   std::optional<Device> output_device, int dim = 0) {
  return data_parallel(module, input, on,
                       DataParallelOptions{.output_device = output_device, .dim = dim});
}

}  // namespace braid::parallel
