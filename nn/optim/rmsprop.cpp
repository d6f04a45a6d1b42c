#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/kernel_args/optim.hpp>
#include <braid/nn/optim/rmsprop.hpp>

namespace braid::optim {
namespace {

const std::vector<RMSprop::Group>& checked(const std::vector<RMSprop::Group>& groups) {
  for (const auto& [parameters, o] : groups) {
    detail::check_at_least_0("RMSprop", "lr", o.lr);
    detail::check_at_least_0("RMSprop", "alpha", o.alpha);
    detail::check_at_least_0("RMSprop", "eps", o.eps);
    detail::check_at_least_0("RMSprop", "weight_decay", o.weight_decay);
    detail::check_at_least_0("RMSprop", "momentum", o.momentum);
  }
  return groups;
}

}  // namespace

RMSprop::RMSprop(const std::vector<Group>& groups)
    : WithOptions("RMSprop", checked(groups), {"momentum", "square_avg", "grad_avg"}) {
  for (const Group& g : groups) with_momentum_.push_back(g.options.momentum != 0);
}
RMSprop::RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options)
    : RMSprop(std::vector<Group>{{std::move(parameters), options}}) {}

bool RMSprop::keeps(std::size_t group, std::size_t k) const noexcept {
  return k == 0 ? with_momentum_[group] != 0 : k == 1 || options(group).centered;
}
std::int64_t RMSprop::batch_key(std::size_t, std::int64_t) const noexcept { return 0; }
bool RMSprop::has_kernel(const KernelTable& kernels) const noexcept {
  return kernels.rmsprop != nullptr;
}

void RMSprop::update(const Batch& batch, std::span<const OptimItem> items) {
  const RMSpropOptions& o = options(batch.group);
  RmspropArgs args{};
  args.dtype = batch.dtype;
  args.items = items.data();
  args.count = static_cast<std::int64_t>(items.size());
  args.lr = o.lr;
  args.alpha = o.alpha;
  args.eps = o.eps;
  args.weight_decay = o.weight_decay;
  args.momentum = o.momentum;
  args.centered = o.centered;
  args.maximize = o.maximize;
  launch("RMSprop", batch.device, &KernelTable::rmsprop, args);
}

}  // namespace braid::optim
