#include <cmath>

#include <braid/nn/optim/sgd.hpp>

#include "optim/fused.hpp"

namespace braid::optim {
namespace {

const std::vector<SGD::Group>& checked(const std::vector<SGD::Group>& groups) {
  for (const auto& [parameters, o] : groups) {
    detail::check_at_least_0("SGD", "lr", o.lr);
    detail::check_at_least_0("SGD", "momentum", o.momentum);
    detail::check_at_least_0("SGD", "weight_decay", o.weight_decay);
    if (!std::isfinite(o.dampening))
      throw ArgumentError(str("SGD: expected a finite dampening, got ", o.dampening));
    if (o.nesterov && !(o.momentum > 0 && o.dampening == 0)) {
      throw ArgumentError(
          str("SGD: expected momentum > 0 and dampening == 0 with nesterov, got momentum ",
              o.momentum, " and dampening ", o.dampening));
    }
  }
  return groups;
}

}  // namespace

SGD::SGD(const std::vector<Group>& groups)
    : WithOptions({"SGD", braid_state, &has_kernel<&KernelTable::sgd>}, checked(groups),
                  [](const SgdOptions& o) {
                    const bool moves = o.momentum != 0;
                    return Kept{.m = moves, .key = moves ? Key::is_first : Key::none};
                  }) {}
SGD::SGD(std::vector<Tensor> parameters, const SgdOptions& options)
    : SGD(std::vector<Group>{{std::move(parameters), options}}) {}

void SGD::update(const Batch& batch, const detail::Update& what) {
  launch_update("SGD", batch, what, &KernelTable::sgd, key_at_replay(batch),
                [this, group = batch.group](SgdArgs& args, std::int64_t key) {
                  const SgdOptions& o = options(group);
                  args.lr = o.lr;
                  args.momentum = o.momentum;
                  args.dampening = o.dampening;
                  args.weight_decay = o.weight_decay;
                  args.nesterov = o.nesterov;
                  args.maximize = o.maximize;
                  args.first = key != 0;
                });
}

}  // namespace braid::optim
