// Adam and AdamW share one kernel; they differ in where weight decay is added.
#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>
#include <braid/nn/optim/adam.hpp>

namespace braid::optim {
namespace {

template <class Group>
const std::vector<Group>& checked(const char* name, const std::vector<Group>& groups) {
  for (const auto& [parameters, o] : groups) {
    detail::check_at_least_0(name, "lr", o.lr);
    detail::check_below_1(name, "beta1", o.beta1);
    detail::check_below_1(name, "beta2", o.beta2);
    detail::check_at_least_0(name, "eps", o.eps);
    detail::check_at_least_0(name, "weight_decay", o.weight_decay);
  }
  return groups;
}

/// `steps` is the number of updates before this one.
template <class Options>
AdamArgs adam_args(const Options& o, DType dtype, std::span<const OptimItem> items,
                   std::int64_t steps, bool coupled) {
  AdamArgs args{};
  args.dtype = dtype;
  args.items = items.data();
  args.count = static_cast<std::int64_t>(items.size());
  args.lr = o.lr;
  args.beta1 = o.beta1;
  args.beta2 = o.beta2;
  args.eps = o.eps;
  args.weight_decay = o.weight_decay;
  args.step = steps + 1;
  args.coupled = coupled;
  args.amsgrad = o.amsgrad;
  args.maximize = o.maximize;
  return args;
}

}  // namespace

Adam::Adam(const std::vector<Group>& groups)
    : WithOptions("Adam", checked("Adam", groups), {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {}
Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options)
    : Adam(std::vector<Group>{{std::move(parameters), options}}) {}

bool Adam::keeps(std::size_t group, std::size_t k) const noexcept {
  return k < 2 || options(group).amsgrad;
}
std::int64_t Adam::batch_key(std::size_t, std::int64_t steps) const noexcept { return steps; }
bool Adam::has_kernel(const KernelTable& kernels) const noexcept { return kernels.adam != nullptr; }
void Adam::update(const Batch& batch, std::span<const OptimItem> items) {
  launch("Adam", batch.device, &KernelTable::adam,
         adam_args(options(batch.group), batch.dtype, items, batch.key, true));
}

AdamW::AdamW(const std::vector<Group>& groups)
    : WithOptions("AdamW", checked("AdamW", groups), {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {}
AdamW::AdamW(std::vector<Tensor> parameters, const AdamWOptions& options)
    : AdamW(std::vector<Group>{{std::move(parameters), options}}) {}

bool AdamW::keeps(std::size_t group, std::size_t k) const noexcept {
  return k < 2 || options(group).amsgrad;
}
std::int64_t AdamW::batch_key(std::size_t, std::int64_t steps) const noexcept { return steps; }
bool AdamW::has_kernel(const KernelTable& kernels) const noexcept {
  return kernels.adam != nullptr;
}
void AdamW::update(const Batch& batch, std::span<const OptimItem> items) {
  launch("AdamW", batch.device, &KernelTable::adam,
         adam_args(options(batch.group), batch.dtype, items, batch.key, false));
}

}  // namespace braid::optim
