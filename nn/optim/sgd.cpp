#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/kernel_args/optim.hpp>
#include <braid/nn/optim/sgd.hpp>

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
    : WithOptions("SGD", checked(groups), {"momentum", "", ""}) {
  for (const Group& g : groups) with_momentum_.push_back(g.options.momentum != 0);
}
SGD::SGD(std::vector<Tensor> parameters, const SgdOptions& options)
    : SGD(std::vector<Group>{{std::move(parameters), options}}) {}

bool SGD::keeps(std::size_t group, std::size_t) const noexcept {
  return with_momentum_[group] != 0;
}
std::int64_t SGD::batch_key(std::size_t group, std::int64_t steps) const noexcept {
  return with_momentum_[group] != 0 && steps == 0;
}
bool SGD::has_kernel(const KernelTable& kernels) const noexcept { return kernels.sgd != nullptr; }

void SGD::update(const Batch& batch, std::span<const OptimItem> items) {
  const SgdOptions& o = options(batch.group);
  SgdArgs args{};
  args.dtype = batch.dtype;
  args.items = items.data();
  args.count = static_cast<std::int64_t>(items.size());
  args.lr = o.lr;
  args.momentum = o.momentum;
  args.dampening = o.dampening;
  args.weight_decay = o.weight_decay;
  args.nesterov = o.nesterov;
  args.maximize = o.maximize;
  args.first = batch.key != 0;
  launch("SGD", batch.device, &KernelTable::sgd, args);
}

}  // namespace braid::optim
