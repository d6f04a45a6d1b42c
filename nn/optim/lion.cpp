#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/kernel_args/optim.hpp>
#include <braid/nn/optim/lion.hpp>

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
    : WithOptions("Lion", checked(groups), {"exp_avg", "", ""}) {}
Lion::Lion(std::vector<Tensor> parameters, const LionOptions& options)
    : Lion(std::vector<Group>{{std::move(parameters), options}}) {}

bool Lion::keeps(std::size_t, std::size_t) const noexcept { return true; }
std::int64_t Lion::batch_key(std::size_t, std::int64_t) const noexcept { return 0; }
bool Lion::has_kernel(const KernelTable& kernels) const noexcept { return kernels.lion != nullptr; }

void Lion::update(const Batch& batch, std::span<const OptimItem> items) {
  const LionOptions& o = options(batch.group);
  LionArgs args{};
  args.dtype = batch.dtype;
  args.items = items.data();
  args.count = static_cast<std::int64_t>(items.size());
  args.lr = o.lr;
  args.beta1 = o.beta1;
  args.beta2 = o.beta2;
  args.weight_decay = o.weight_decay;
  args.maximize = o.maximize;
  launch("Lion", batch.device, &KernelTable::lion, args);
}

}  // namespace braid::optim
