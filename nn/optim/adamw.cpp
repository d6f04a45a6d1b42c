#include <cmath>

#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>
#include <braid/nn/optim.hpp>

namespace braid::optim {

namespace {

const AdamWOptions& checked(const AdamWOptions& o) {
  const auto at_least_0 = [](const char* what, double value) {
    if (!(value >= 0) || std::isinf(value)) throw ArgumentError(str("AdamW: expected ", what, " >= 0, got ", value));
  };
  const auto below_1 = [](const char* what, double value) {
    if (!(value >= 0 && value < 1)) throw ArgumentError(str("AdamW: expected 0 <= ", what, " < 1, got ", value));
  };
  at_least_0("lr", o.lr);
  below_1("beta1", o.beta1);
  below_1("beta2", o.beta2);
  at_least_0("eps", o.eps);
  at_least_0("weight_decay", o.weight_decay);
  return o;
}

}  // namespace

AdamW::AdamW(std::vector<Tensor> parameters, const AdamWOptions& options)
    : Optimizer("AdamW", std::move(parameters), checked(options).lr, {"exp_avg", "exp_avg_sq"}), options_(options) {}

AdamWOptions AdamW::options() const noexcept {
  AdamWOptions o = options_;
  o.lr = lr();
  return o;
}

std::int64_t AdamW::group_key(std::int64_t steps) const noexcept { return steps; }
bool AdamW::has_kernel(const KernelTable& kernels) const noexcept { return kernels.adamw != nullptr; }

void AdamW::update(const Group& group, std::span<const OptimItem> items) {
  AdamWArgs args{};
  args.dtype = group.dtype;
  args.items = items.data();
  args.count = static_cast<std::int64_t>(items.size());
  args.lr = lr();
  args.beta1 = options_.beta1;
  args.beta2 = options_.beta2;
  args.eps = options_.eps;
  args.weight_decay = options_.weight_decay;
  args.step = group.key + 1;
  launch("AdamW", group.device, &KernelTable::adamw, args);
}

}  // namespace braid::optim
