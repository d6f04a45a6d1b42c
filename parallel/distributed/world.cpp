#include "distributed/world.hpp"

#include <algorithm>

#include <braid/core/checkpoint.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>

#include "primitives/broadcast.hpp"

namespace braid::parallel::distributed {
namespace {

thread_local std::shared_ptr<const World> world_of_thread;

void check_takes_part(const World& world) {
  if (world.refuses)
    throw ArgumentError(
        "DistributedDataParallel: expected no layer that computes over all ranks (SyncBatchNorm) "
        "inside of join(), where some ranks may have no data, got one; "
        "throw_on_early_termination = true allows it");
  world.used.store(true, std::memory_order_relaxed);
}

/// Sums each of the local sums over the ranks, in place.
void add_ranks(const World& world, std::vector<Tensor>& sums) {
  std::vector<Work> works;
  for (Tensor& sum : sums) {
    // others may hold the tensor, and it may be a view
    sum = sum.detach().clone();
    works.push_back(world.ranks->start_all_reduce(sum, ReduceOp::sum, "statistics"));
  }
  for (const Work& work : works) work.wait();
}

/// The sum over the virtual replicas of all ranks: each rank adds its blocks, all get the blocks of
/// all, and complete the tree.
Tensor sum_of_tree(const World& world, const VirtualShare& share, std::span<const Tensor> parts,
                   std::size_t count, std::size_t k, std::span<const Device> devices) {
  std::size_t most = 0;
  for (int r = 0; r < share.ranks; ++r) most = std::max(most, share.blocks(r).size());
  const std::vector<Interval> blocks = share.blocks();
  const Tensor& like = parts[k];
  const std::int64_t numel = like.numel(), rows = static_cast<std::int64_t>(most);
  const Tensor mine = zeros({rows, numel}, {.device = devices.front(), .dtype = like.dtype()}),
               all = make_tensor({share.ranks * rows, numel}, like.dtype(), devices.front());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const auto begin = static_cast<std::size_t>(blocks[b].begin - share.mine().begin),
               end = static_cast<std::size_t>(blocks[b].end - share.mine().begin);
    std::vector<Tensor> of_block;
    for (std::size_t i = begin; i < end; ++i) of_block.push_back(parts[i * count + k].detach());
    const Tensor sum = reduce_tensors(of_block, devices.subspan(begin, end - begin), true).front();
    mine[static_cast<std::int64_t>(b)].copy_(sum.reshape({numel}));
  }
  world.ranks->start_all_gather(all, mine, "statistics").wait();
  std::vector<std::int64_t> row_of;  // of each block, counted over all ranks
  for (int r = 0; r < share.ranks; ++r)
    for (std::size_t b = 0; b < share.blocks(r).size(); ++b)
      row_of.push_back(r * rows + static_cast<std::int64_t>(b));
  return finish_tree(share,
                     [&](std::int64_t i) { return all[row_of[static_cast<std::size_t>(i)]]; })
      .reshape(like.shape())
      .clone();
}

}  // namespace

std::shared_ptr<const World> current_world() noexcept { return world_of_thread; }

/// The group of the only replica of a rank.
class WorldScope::Group final : public ReplicaGroup {
 public:
  Group(std::shared_ptr<const World> world, Device device)
      : world_(std::move(world)), device_(device) {}
  [[nodiscard]] std::size_t size() const noexcept override { return world_->replicas(1); }
  [[nodiscard]] std::size_t rank() const noexcept override {
    return static_cast<std::size_t>(world_->ranks->rank());
  }
  [[nodiscard]] bool virtual_replicas() const noexcept override { return false; }
  [[nodiscard]] std::vector<Tensor> all_reduce(std::vector<Tensor> tensors) override {
    braid::detail::refuse_in_checkpoint("ReplicaGroup::all_reduce");
    return all_reduce_over(world_, tensors, {&device_, 1});
  }
  [[nodiscard]] double all_reduce(double value) override {
    braid::detail::refuse_in_checkpoint("ReplicaGroup::all_reduce");
    return all_reduce_over(*world_, value);
  }

 private:
  std::shared_ptr<const World> world_;
  Device device_;
};

WorldScope::WorldScope(std::shared_ptr<const World> world, Device device, bool whole)
    : before_(world_of_thread) {
  if (world && whole) {
    group_ = std::make_unique<Group>(world, device);
    context_ = std::exchange(thread_state().context, group_.get());
  }
  world_of_thread = std::move(world);
}
WorldScope::~WorldScope() {
  if (group_) thread_state().context = context_;
  world_of_thread = std::move(before_);
}

std::vector<Tensor> all_reduce_over(const std::shared_ptr<const World>& world,
                                    std::span<const Tensor> parts,
                                    std::span<const Device> devices) {
  check_takes_part(*world);
  const std::size_t replicas = devices.size(), count = parts.size() / replicas;
  std::vector<Tensor> sums, results;
  {
    const NoGrad guard;
    if (world->share) {
      for (std::size_t k = 0; k < count; ++k)
        sums.push_back(sum_of_tree(*world, *world->share, parts, count, k, devices));
    } else {
      sums = replicas > 1 ? reduce_tensors(parts, devices)
                          : std::vector<Tensor>(parts.begin(), parts.end());
      add_ranks(*world, sums);
    }
    if (replicas == 1) results = sums;
    else
      for (const std::vector<Tensor>& of_replica : broadcast_tensors(sums, devices))
        results.insert(results.end(), of_replica.begin(), of_replica.end());
  }
  bool recorded = false;
  for (const Tensor& part : parts) recorded = recorded || needs_grad({part});
  if (!recorded) return results;
  std::vector<Tensor> like;  // of each k, without a graph
  for (std::size_t k = 0; k < count; ++k) like.push_back(sums[k].detach());
  record_many("all_reduce", parts, results, devices.front(),
              [world, like, group = std::vector<Device>(devices.begin(), devices.end())](
                  std::span<const Tensor> dys) {
                // a result that is not used here may be used on another rank
                std::vector<Tensor> dense(dys.begin(), dys.end());
                for (std::size_t i = 0; i < dense.size(); ++i) {
                  const Tensor& t = like[i % like.size()];
                  if (!dense[i].defined())
                    dense[i] =
                        zeros(t.shape(), {.device = group[i / like.size()], .dtype = t.dtype()});
                }
                return Grads(all_reduce_over(world, dense, group));
              });
  return results;
}

double all_reduce_over(const World& world, double value) {
  check_takes_part(world);
  const Tensor t = full({1}, value, {.device = Device(), .dtype = DType::float64});
  world.ranks->start_all_reduce(t, ReduceOp::sum, "count").wait();
  return t.item<double>();
}

}  // namespace braid::parallel::distributed
