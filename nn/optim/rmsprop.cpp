#include <braid/nn/optim/rmsprop.hpp>

#include "optim/fused.hpp"

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
    : WithOptions(
          {"RMSprop", braid_state, &has_kernel<&KernelTable::rmsprop>}, checked(groups),
          [](const RMSpropOptions& o) { return Kept{.m = o.momentum != 0, .s = o.centered}; }) {}
RMSprop::RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options)
    : RMSprop(std::vector<Group>{{std::move(parameters), options}}) {}

void RMSprop::update(const Batch& batch, const detail::Update& what) {
  launch_update("RMSprop", batch, what, &KernelTable::rmsprop, key_at_replay(batch),
                [this, group = batch.group](RmspropArgs& args, std::int64_t /*key*/) {
                  const RMSpropOptions& o = options(group);
                  args.lr = o.lr;
                  args.alpha = o.alpha;
                  args.eps = o.eps;
                  args.weight_decay = o.weight_decay;
                  args.momentum = o.momentum;
                  args.centered = o.centered;
                  args.maximize = o.maximize;
                });
}

}  // namespace braid::optim
