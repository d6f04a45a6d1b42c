#include <braid/parallel/internal/distributed.hpp>

#include <algorithm>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/parallel/deterministic_data_parallel.hpp>

#include "distributed/exchange.hpp"
#include "distributed/module_sync.hpp"
#include "distributed/state.hpp"

namespace braid::parallel::detail {
namespace {

constexpr const char* kName = "DistributedDataParallel";

/// What is wrong with the model on this rank; empty if nothing is.
std::string wrong_with(const tree::Flat& module, const DistributedOptions& options) {
  bool any = false;
  for (const tree::Leaf& leaf : module.leaves) {
    const Tensor& t = *leaf.tensor;
    if (!t.defined() || !t.requires_grad()) continue;
    any = any || leaf.kind == tree::Kind::parameter;
    if (leaf.kind == tree::Kind::parameter && !t.is_leaf())
      return str("expected parameters that are leaves, got '", module.path(leaf),
                 "', which an op made");
    if (options.virtual_replicas == 0) continue;
    if (leaf.kind != tree::Kind::parameter)
      return str("virtual_replicas: expected gradients of parameters only, got the tensor '",
                 module.path(leaf), "', which requires one");
    if (!t.is_contiguous())
      return str("virtual_replicas: expected contiguous parameters, got '", module.path(leaf),
                 "' with strides ", t.strides());
  }
  return any ? std::string()
             : std::string(
                   "is not needed when a module doesn't have any parameter that requires a "
                   "gradient: expected at least one, got none");
}

void check_options(const DistributedOptions& options) {
  if (options.virtual_replicas < 0)
    throw ArgumentError(
        str(kName, ": expected virtual_replicas >= 0, got ", options.virtual_replicas));
  if (options.virtual_replicas > 0 && options.hook)
    throw ArgumentError(str(kName,
                            ": expected a hook or virtual_replicas, got both: the sum of a hook "
                            "depends on the number of ranks"));
  if (options.bucket_bytes == 0)
    throw ArgumentError(str(kName, ": expected bucket_bytes > 0, got 0"));
}

/// The rows of the batch: those of the first tensor that has the dim. -1: there are none.
std::int64_t rows_of(const tree::Flat& batch, int dim, std::span<const int> dims) {
  for (const tree::Leaf& leaf : batch.leaves) {
    if (!leaf.tensor->defined()) continue;
    const int along = dim_of(batch, leaf, dim, dims), rank = leaf.tensor->dim(),
              at = along < 0 ? along + rank : along;
    if (at >= 0 && at < rank) return leaf.tensor->shape()[at];
  }
  return -1;
}

/// A collective: the share of this rank in a batch of all ranks. Throws on all ranks if the rows
/// are not those of the virtual replicas.
distributed::VirtualShare share_rows(ProcessCommunicator& ranks, int virtual_replicas,
                                     std::int64_t mine) {
  const auto all = distributed::exchange_numbers(ranks, {mine}, "rows of the batch");
  distributed::VirtualShare share;
  share.rank = ranks.rank();
  share.ranks = ranks.size();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank][0] < 1)
      throw ArgumentError(
          str(kName, ": expected at least one row for each rank, got ",
              all[rank][0] < 0 ? std::string("arguments without rows") : std::string("none"),
              " on rank ", rank));
    share.rows += all[rank][0];
  }
  share.replicas = std::min<std::int64_t>(virtual_replicas, share.rows);
  for (int rank = 0; rank < share.ranks; ++rank) {
    const distributed::Interval of = share.of_rank(rank);
    const std::int64_t want = share.row(of.end) - share.row(of.begin),
                       got = all[static_cast<std::size_t>(rank)][0];
    if (want != got)
      throw ArgumentError(str(kName, ": expected ", want, " of ", share.rows, " rows on rank ",
                              rank, ", those of its virtual replicas ", of.begin, " to ",
                              of.end - 1, " of ", share.replicas, ", got ", got,
                              " (DistributedSampler with consecutive = true deals them, if the "
                              "number of ranks divides virtual_replicas)"));
  }
  return share;
}

}  // namespace

Distributed::Distributed(const tree::Flat& module, std::shared_ptr<ProcessCommunicator> ranks,
                         const DistributedOptions& options)
    : state_(std::make_unique<State>()) {
  check_options(options);
  const std::string wrong = wrong_with(module, options);
  state_->devices = state_->most_devices =
      std::max<std::size_t>(options.device_ids.list().size(), 1);
  if (options.init_sync)
    state_->most_devices = distributed::compare_models(*ranks, module, wrong, state_->devices);
  else if (!wrong.empty()) throw ArgumentError(str(kName, ": ", wrong));
  std::vector<Tensor> parameters;
  std::vector<std::string> names;
  const std::vector<std::size_t> first = module.first_of();
  for (std::size_t k = 0; k < module.leaves.size(); ++k) {
    const tree::Leaf& leaf = module.leaves[k];
    if (leaf.kind != tree::Kind::parameter || first[k] != k || !leaf.tensor->defined()) continue;
    state_->parameters.push_back(*leaf.tensor);
    state_->trained.push_back(leaf.tensor->requires_grad());
    if (!leaf.tensor->requires_grad()) continue;
    parameters.push_back(*leaf.tensor);
    names.push_back(module.path(leaf));
  }
  if (options.init_sync && ranks->size() > 1) {
    distributed::broadcast_values(*ranks, state_->parameters, 0, true);
    distributed::broadcast_values(*ranks, distributed::tensors_of(module, false), 0, true);
  }
  constexpr std::size_t kFirst = std::size_t{1} << 20;
  distributed::ReducerOptions reducer;
  reducer.bucket_bytes = options.bucket_bytes;
  reducer.first_bucket_bytes =
      options.bucket_bytes == DistributedOptions().bucket_bytes ? kFirst : options.bucket_bytes;
  reducer.find_unused_parameters = options.find_unused_parameters;
  reducer.static_graph = options.static_graph;
  reducer.views = options.gradient_as_bucket_view;
  reducer.deterministic = options.virtual_replicas > 0;
  reducer.hook = options.hook;
  state_->reducer = std::make_shared<distributed::Reducer>(ranks, std::move(parameters),
                                                           std::move(names), std::move(reducer));
  distributed::Reducer::attach(state_->reducer);
  state_->ranks = std::move(ranks);
  state_->broadcast_buffers = options.broadcast_buffers;
  state_->find_unused_parameters = options.find_unused_parameters;
  state_->refused_hook = hook_refused_by_join(options.hook);
  state_->virtual_replicas = options.virtual_replicas;
  state_->dim = options.dim;
  state_->buffers_due = !options.init_sync;
  state_->dims = options.dims;
}
Distributed::Distributed(Distributed&&) noexcept = default;
Distributed& Distributed::operator=(Distributed&&) noexcept = default;
Distributed::~Distributed() = default;

ProcessCommunicator& Distributed::ranks() const noexcept { return *state_->ranks; }
std::vector<std::vector<std::size_t>> Distributed::buckets() const {
  return state_->reducer->buckets();
}

void Distributed::begin_no_sync() const {
  if (state_->deterministic())
    throw ArgumentError(
        str(kName, ": no_sync: expected no virtual_replicas, got ", state_->virtual_replicas,
            ": a sum over several batches on each rank depends on the number of ranks; without "
            "no_sync, gradients accumulate too"));
  ++state_->no_syncs;
}
void Distributed::end_no_sync() const noexcept { --state_->no_syncs; }

struct Distributed::Forward::Inside {
  std::optional<RankShare> share;
  std::shared_ptr<distributed::World> world;
  std::optional<distributed::WorldScope> scope;
  State* state = nullptr;
  ~Inside() {
    // The order of the statistics' and the buckets' reductions in backward could differ between
    // ranks, with another graph on each, or where the devices of a rank run side by side.
    if (world && world->used.load() && (state->find_unused_parameters || state->most_devices > 1))
      state->reducer->set_delayed(true);
  }
};

Distributed::Forward::Forward(const Distributed& of, const tree::Flat& module,
                              const tree::Flat& batch, bool training)
    : inside_(std::make_unique<Inside>()) {
  State& state = *of.state_;
  const bool records = grad_enabled();
  inside_->state = &state;
  const std::vector<Tensor> parameters = distributed::tensors_of(module, true);
  bool same = parameters.size() == state.parameters.size();
  for (std::size_t k = 0; same && k < parameters.size(); ++k)
    same = parameters[k].id() == state.parameters[k].id();
  if (state.reducer->replaced())
    throw ArgumentError(str(kName,
                            ": expected the parameters to be in one DistributedDataParallel, got "
                            "some that another one has taken since; it reduces them now"));
  for (std::size_t k = 0; same && k < parameters.size(); ++k)
    if (parameters[k].requires_grad() && !state.trained[k])
      throw ArgumentError(str(kName,
                              ": expected only those parameters to require a gradient that did so "
                              "at construction, got another one of shape ",
                              parameters[k].shape(), "; wrap the model again after such a change"));
  same = same && state.reducer->fits();
  if (!same)
    throw ArgumentError(str(kName,
                            ": expected the parameters that the model had at construction, got "
                            "others, or on another device or of another dtype; wrap the model "
                            "after such changes"));
  // The ranks have trained with their own rows: they would evaluate differently. As in PyTorch, the
  // first forward without gradients sends, and the next ones do not. Inside of join, ranks without
  // data would not take part.
  if (!records && state.buffers_due && state.broadcast_buffers && !state.joining &&
      state.ranks->size() > 1) {
    distributed::broadcast_values(*state.ranks, distributed::tensors_of(module, false), 0, false,
                                  "buffers, before an evaluation");
    state.buffers_due = false;
  }
  if (!records && !training) return;
  const bool reduces = records && state.no_syncs == 0;
  int root = 0;
  if (state.joining && records) root = state.announce(reduces);
  if (records) {
    if (reduces && state.reducer->rebuild_due()) state.reducer->rebuild(root);
    state.reducer->set_reduces(reduces);
    state.reducer->set_delayed(false);
  }
  if (state.deterministic()) {
    const distributed::VirtualShare share =
        share_rows(*state.ranks, state.virtual_replicas, rows_of(batch, state.dim, state.dims));
    const distributed::Interval mine = share.mine();
    RankShare& of_call = inside_->share.emplace();
    for (std::int64_t v = mine.begin; v < mine.end; ++v)
      of_call.rows.push_back(share.row(v + 1) - share.row(v));
    of_call.first_replica = static_cast<std::uint64_t>(mine.begin);
    of_call.first_row = share.row(mine.begin);
    if (records) {
      state.reducer->set_share(share);
      of_call.take = [reducer = std::weak_ptr(state.reducer), share](auto tensors, auto parts,
                                                                     auto devices) {
        const auto alive = reducer.lock();
        return alive && alive->take_parts(share, tensors, parts, devices);
      };
    }
    inside_->world = std::make_shared<distributed::World>();
    inside_->world->share = share;
  }
  if (state.ranks->size() == 1) {
    inside_->world.reset();
    return;
  }
  if (state.broadcast_buffers && reduces) {
    distributed::broadcast_values(*state.ranks, distributed::tensors_of(module, false), root,
                                  false);
    state.buffers_due = true;
  }
  if (!inside_->world) inside_->world = std::make_shared<distributed::World>();
  inside_->world->ranks = state.ranks;
  inside_->world->refuses = state.joining && !state.joining->options.throw_on_early_termination;
  const Device device = parameters.front().device();
  inside_->scope.emplace(inside_->world, device, !state.deterministic() && state.devices == 1);
}
Distributed::Forward::~Forward() = default;

const RankShare* Distributed::Forward::share() const noexcept {
  return inside_->share ? &*inside_->share : nullptr;
}

parallel::detail::State make_state(const ProcessCommunicator* ranks,
                                   const DistributedOptions& options) {
  if (ranks == nullptr) throw ArgumentError(str(kName, ": expected a communicator, got null"));
  std::vector<Device> on = options.device_ids.list();
  if (on.empty()) on.push_back(ranks->device());
  CallOptions call;
  call.scatter.dim = options.dim;
  call.scatter.dims = options.dims;
  call.output_dims = options.output_dims;
  call.bucket_bytes = options.bucket_bytes;
  call.virtual_replicas = static_cast<std::size_t>(std::max(options.virtual_replicas, 0));
  return {kName, std::move(on), std::move(call)};
}

}  // namespace braid::parallel::detail
