// Adam and AdamW share one kernel; they differ in where weight decay is added.
#include <braid/nn/optim/adam.hpp>

#include "optim/fused.hpp"

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
void set_args(AdamArgs& args, const Options& o, std::int64_t steps, bool coupled) {
  args.lr = o.lr;
  args.beta1 = o.beta1;
  args.beta2 = o.beta2;
  args.eps = o.eps;
  args.weight_decay = o.weight_decay;
  args.step = steps + 1;
  args.coupled = coupled;
  args.amsgrad = o.amsgrad;
  args.maximize = o.maximize;
}

}  // namespace

Adam::Adam(const std::vector<Group>& groups)
    : WithOptions({"Adam", braid_state, &has_kernel<&KernelTable::adam>}, checked("Adam", groups),
                  [](const AdamOptions& o) { return Kept{.s = o.amsgrad, .key = Key::steps}; }) {}
Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options)
    : Adam(std::vector<Group>{{std::move(parameters), options}}) {}

void Adam::update(const Batch& batch, const detail::Update& what) {
  launch_update("Adam", batch, what, &KernelTable::adam, key_at_replay(batch),
                [this, group = batch.group](AdamArgs& args, std::int64_t steps) {
                  set_args(args, options(group), steps, true);
                });
}

AdamW::AdamW(const std::vector<Group>& groups)
    : WithOptions({"AdamW", braid_state, &has_kernel<&KernelTable::adam>}, checked("AdamW", groups),
                  [](const AdamWOptions& o) { return Kept{.s = o.amsgrad, .key = Key::steps}; }) {}
AdamW::AdamW(std::vector<Tensor> parameters, const AdamWOptions& options)
    : AdamW(std::vector<Group>{{std::move(parameters), options}}) {}

void AdamW::update(const Batch& batch, const detail::Update& what) {
  launch_update("AdamW", batch, what, &KernelTable::adam, key_at_replay(batch),
                [this, group = batch.group](AdamArgs& args, std::int64_t steps) {
                  set_args(args, options(group), steps, false);
                });
}

}  // namespace braid::optim
