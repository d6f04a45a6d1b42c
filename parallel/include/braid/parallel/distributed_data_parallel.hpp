#pragma once
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <braid/nn/module.hpp>
#include <braid/nn/walks.hpp>
#include <braid/parallel/data_parallel.hpp>
#include <braid/parallel/distributed_hooks.hpp>
#include <braid/parallel/internal/distributed.hpp>
#include <braid/parallel/process.hpp>

namespace braid::parallel {

/// The options of DistributedDataParallel.
struct DistributedOptions {
  /// the devices of this rank, over which it splits its batch; default: the device of the process
  DeviceList device_ids = {};
  /// the size of a bucket of gradients; with the default the first bucket has 1 MiB, so that its
  /// reduction begins early
  std::size_t bucket_bytes = std::size_t{25} << 20;
  /// allow parameters that the loss does not use. One that no rank uses keeps its gradient
  bool find_unused_parameters = false;
  /// the same parameters are used in every step: unused ones are found in the first one only
  bool static_graph = false;
  /// grad() of the parameters are views of the buckets: saves memory for one copy of the gradients.
  /// A backward that fails removes them
  bool gradient_as_bucket_view = false;
  /// send rank 0's buffers to all ranks before each forward that trains; false: each rank keeps its
  /// own, such as the running statistics of a BatchNorm
  bool broadcast_buffers = true;
  bool init_sync = true;  ///< compare the models, and send rank 0's parameters and buffers
  /// Above 0: the deterministic mode. The batch of all ranks is split into this number of parts,
  /// and training has the same bits for any number of ranks, and of devices in each
  int virtual_replicas = 0;
  DistributedHook hook = {};  ///< reduces a bucket; default: the mean over all ranks
  int dim = 0;                ///< as in DataParallelOptions, like the following
  std::vector<int> dims = {};
  std::vector<int> output_dims = {};
};

/// The options of DistributedDataParallel::join.
struct JoinOptions {
  /// divide gradients by all ranks, so that every row has the same weight; false: by those that
  /// still have data
  bool divide_by_initial_world_size = true;
  /// throw on all ranks as soon as one has no more data
  bool throw_on_early_termination = false;
};

/// Trains one model on several processes: every rank computes the gradients of its own batch, and
/// backward makes them the mean over the ranks, while it runs.
///
///     parallel::DistributedDataParallel model(Net{}, process);
///     optim::SGD optimizer(parameters(model), {.lr = 0.1});
///     cross_entropy(model(x), labels).backward();  // each rank with its rows
///     optimizer.step();                            // the same step on every rank
///
/// Forward   the module, over the devices of the rank as in DataParallel. All ranks call it
///           together, unless it neither trains nor records gradients, nor sends buffers
/// Gradient  in grad() of the parameters: the mean over the ranks, and what was there before. Sums
///           over the rows of a batch therefore differ from those of one process by a factor. Only
///           backward() reduces; grad(outputs, inputs) does not
/// Buffers   those of rank 0 are sent to all ranks before each forward that records gradients, and
///           before the first one without gradients after it (not in no_sync and join). So the
///           running statistics of a BatchNorm are those of rank 0's rows, also in evaluation; one
///           rank alone evaluates `model.module`. With
///           `broadcast_buffers = false` each rank has the statistics of its own rows: the ranks
///           then evaluate differently, and a checkpoint holds those of rank 0, which all ranks get
///           when it is loaded. nn::SyncBatchNorm has the statistics of all rows, on all ranks
/// Failures  a backward that throws on one rank throws on all, before any gradient changes
/// Deterministic  the loss must be a mean over the rows of the rank; its gradients are weighted by
///           rows. The ranks must have consecutive rows of the batch (DistributedSampler with
///           `consecutive`), each the rows of its virtual replicas; other numbers of rows are an
///           error. no_sync, join, hooks and one backward over several forwards
///           are refused
/// Throws    at construction, on all ranks: ArgumentError if the models differ, naming the first
///           parameter that does, or if no parameter requires a gradient; ArgumentError without a
///           communicator. In backward:
///           AutogradError naming the parameters without a gradient and their ranks; Error for a
///           failure of another rank; CommError
/// Notes     the parameters must not be replaced, moved or converted afterwards, nor wrapped once
///           more or begin to require a gradient: the next forward throws ArgumentError. Not
///           copyable. As DataParallel otherwise
/// Source    torch.nn.parallel.DistributedDataParallel; Li et al. 2020
template <class M> struct DistributedDataParallel : nn::Module {
  static_assert((check_tree<M>(), true));
  M module;

  explicit DistributedDataParallel(M&& m, Process& process, const DistributedOptions& options = {})
      : DistributedDataParallel(std::move(m), process.shared_communicator(), options) {}
  /// Over some of the ranks: those of a communicator made by split().
  DistributedDataParallel(M&& m, std::shared_ptr<ProcessCommunicator> ranks,
                          const DistributedOptions& options = {})
      : DistributedDataParallel(detail::make_state(ranks.get(), options), std::move(m), ranks,
                                options) {}
  /// A compile error. Move the model in, or clone it first:
  /// `DistributedDataParallel(clone(model), process)`.
  template <class U, class... A>
    requires(std::is_lvalue_reference_v<U> && std::same_as<std::remove_cvref_t<U>, M>)
  explicit DistributedDataParallel(U&&, A&&...)
      : DistributedDataParallel(detail::State(), detail::no_model<M>(), nullptr, {}) {
    detail::refuse_lvalue<M>();
  }

  template <class... A>
    requires braid::detail::CallsCopies<M, std::decay_t<A>...>
  auto operator()(const A&... args) const {
    const auto batch = detail::arguments(args...);
    const detail::Distributed::Forward forward(distributed_, tree::flatten(module),
                                               detail::flat_of(batch), this->training);
    detail::Call call(state_, module, batch, detail::To::gather, forward.share());
    if (call.is_whole()) return call.move_output(call.run_whole(module, batch));
    auto inputs = call.scatter(batch);
    auto replicas = call.replicate(module);
    const auto outputs = call.parallel_apply(module, std::move(replicas), std::move(inputs));
    return call.gather(outputs);
  }
  /// A compile error.
  template <class... A> braid::detail::NotCallable operator()(const A&...) const {
    braid::detail::check_calls_copies<M, std::decay_t<A>...>();
    return {};
  }

  /// While it exists, backward adds to the gradients of this rank only. The next backward outside
  /// reduces their sum. The forward must be inside, too.
  ///
  ///     parallel::DistributedDataParallel model(Net{}, process);
  ///     {
  ///       const auto local = model.no_sync();
  ///       cross_entropy(model(x), labels).backward();
  ///     }
  ///     cross_entropy(model(x), labels).backward();
  [[nodiscard]] auto no_sync() const { return NoSync(distributed_); }
  /// For ranks with different numbers of batches: a rank that leaves the scope of the guard, or
  /// calls finish(), takes part in what the others do until all have left. The model of the rank
  /// that was last is then sent to all. Of the hooks it allows all_reduce_hook, fp16_compress and
  /// bf16_compress.
  ///
  ///     parallel::DistributedDataParallel model(Net{}, process);
  ///     const auto join = model.join();
  ///     for (int batch = 0; batch < 10 + process.rank(); ++batch)
  ///       cross_entropy(model(x), labels).backward();
  [[nodiscard]] auto join(const JoinOptions& options = {}) const { return Join(*this, options); }

  /// The module, like `->` of a pointer to it.
  [[nodiscard]] const M* operator->() const noexcept { return &module; }
  [[nodiscard]] M* operator->() noexcept { return &module; }
  [[nodiscard]] const detail::Distributed& distributed() const noexcept { return distributed_; }

  class NoSync {
   public:
    explicit NoSync(const detail::Distributed& of) : of_(&of) { of.begin_no_sync(); }
    ~NoSync() { of_->end_no_sync(); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    const detail::Distributed* of_;
  };
  class Join {
   public:
    Join(const DistributedDataParallel& of, const JoinOptions& options)
        : of_(&of), exceptions_(std::uncaught_exceptions()) {
      of.distributed_.begin_join(options);
    }
    /// Calls finish(), and throws what it throws, unless the scope is left by an exception.
    ~Join() noexcept(false) {
      if (std::uncaught_exceptions() > exceptions_) of_->distributed_.leave_join();
      else finish();
    }
    Join(const Join&) = delete;
    Join& operator=(const Join&) = delete;
    /// Takes part until all ranks have left. A second call does nothing.
    void finish() {
      if (finished_) return;
      finished_ = true;
      of_->distributed_.finish_join(tree::flatten(of_->module));
    }

   private:
    const DistributedDataParallel* of_;
    int exceptions_;
    bool finished_ = false;
  };

  BRAID_FIELDS(module)

 private:
  DistributedDataParallel(detail::State state, M&& m,
                          const std::shared_ptr<ProcessCommunicator>& ranks,
                          const DistributedOptions& options)
      : module(std::move(m)),
        state_(std::move(state)),
        distributed_((detail::check_not_nested<M>(), placed()), ranks, options) {}
  /// The module's tensors, on the first device.
  tree::Flat placed() {
    if (state_.devices().size() == 1) to(module, state_.devices().front());
    return tree::flatten(module);
  }

  detail::State state_;
  detail::Distributed distributed_;
};
template <class M> DistributedDataParallel(M, Process&) -> DistributedDataParallel<M>;
template <class M>
DistributedDataParallel(M, Process&, DistributedOptions) -> DistributedDataParallel<M>;
template <class M>
DistributedDataParallel(M, std::shared_ptr<ProcessCommunicator>) -> DistributedDataParallel<M>;
template <class M>
DistributedDataParallel(M, std::shared_ptr<ProcessCommunicator>, DistributedOptions)
    -> DistributedDataParallel<M>;

}  // namespace braid::parallel
