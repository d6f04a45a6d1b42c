#include <braid/nn/optim/lion.hpp>

#include "optim/fused.hpp"

namespace braid::optim {
namespace {

const std::vector<Lion::Group>& checked(const std::vector<Lion::Group>& groups) {
  for (const auto& [parameters, o] : groups) {
    detail::check_at_least_0("Lion", "lr", o.lr);
    detail::check_below_1("Lion", "beta1", o.beta1);
    detail::check_below_1("Lion", "beta2", o.beta2);
    detail::check_at_least_0("Lion", "weight_decay", o.weight_decay);
  }
  return groups;
}

}  // namespace

Lion::Lion(const std::vector<Group>& groups)
    : WithOptions({"Lion", braid_state, &has_kernel<&KernelTable::lion>}, checked(groups),
                  [](const LionOptions&) { return Kept{}; }) {}
Lion::Lion(std::vector<Tensor> parameters, const LionOptions& options)
    : Lion(std::vector<Group>{{std::move(parameters), options}}) {}

void Lion::update(const Batch& batch, const detail::Update& what) {
  launch_update("Lion", batch, what, &KernelTable::lion, key_at_replay(batch),
                [this, group = batch.group](LionArgs& args, std::int64_t /*key*/) {
                  const LionOptions& o = options(group);
                  args.lr = o.lr;
                  args.beta1 = o.beta1;
                  args.beta2 = o.beta2;
                  args.weight_decay = o.weight_decay;
                  args.maximize = o.maximize;
                });
}

}  // namespace braid::optim
