#include <cmath>

#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>
#include <braid/nn/optim.hpp>

namespace braid::optim {

namespace {

const SgdOptions& checked(const SgdOptions& o) {
  const auto at_least_0 = [](const char* what, double value) {
    if (!(value >= 0) || std::isinf(value)) throw ArgumentError(str("SGD: expected ", what, " >= 0, got ", value));
  };
  at_least_0("lr", o.lr);
  at_least_0("momentum", o.momentum);
  at_least_0("weight_decay", o.weight_decay);
  if (!std::isfinite(o.dampening)) throw ArgumentError(str("SGD: expected a finite dampening, got ", o.dampening));
  if (o.nesterov && !(o.momentum > 0 && o.dampening == 0)) {
    throw ArgumentError(str("SGD: expected momentum > 0 and dampening == 0 with nesterov, got momentum ", o.momentum, " and dampening ", o.dampening));
  }
  return o;
}

}  // namespace

SGD::SGD(std::vector<Tensor> parameters, const SgdOptions& options)
    : Optimizer("SGD", std::move(parameters), checked(options).lr,
                options.momentum != 0 ? std::vector<std::string_view>{"momentum"} : std::vector<std::string_view>{}),
      options_(options) {}

SgdOptions SGD::options() const noexcept {
  SgdOptions o = options_;
  o.lr = lr();
  return o;
}

std::int64_t SGD::group_key(std::int64_t steps) const noexcept { return options_.momentum != 0 && steps == 0; }
bool SGD::has_kernel(const KernelTable& kernels) const noexcept { return kernels.sgd != nullptr; }

void SGD::update(const Group& group, std::span<const OptimItem> items) {
  SgdArgs args{};
  args.dtype = group.dtype;
  args.items = items.data();
  args.count = static_cast<std::int64_t>(items.size());
  args.lr = lr();
  args.momentum = options_.momentum;
  args.dampening = options_.dampening;
  args.weight_decay = options_.weight_decay;
  args.nesterov = options_.nesterov;
  args.maximize = options_.maximize;
  args.first = group.key != 0;
  launch("SGD", group.device, &KernelTable::sgd, args);
}

}  // namespace braid::optim
