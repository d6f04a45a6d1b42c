#include <braid/nn/optim/adagrad.hpp>

#include "optim/fused.hpp"

namespace braid::optim {
namespace {

const std::vector<Adagrad::Group>& checked(const std::vector<Adagrad::Group>& groups) {
  for (const auto& [parameters, o] : groups) {
    detail::check_at_least_0("Adagrad", "lr", o.lr);
    detail::check_at_least_0("Adagrad", "lr_decay", o.lr_decay);
    detail::check_at_least_0("Adagrad", "weight_decay", o.weight_decay);
    detail::check_at_least_0("Adagrad", "initial_accumulator_value", o.initial_accumulator_value);
    detail::check_at_least_0("Adagrad", "eps", o.eps);
  }
  return groups;
}

}  // namespace

Adagrad::Adagrad(const std::vector<Group>& groups)
    : WithOptions({"Adagrad", braid_state, &has_kernel<&KernelTable::adagrad>}, checked(groups),
                  [](const AdagradOptions& o) {
                    // the rate depends on a parameter's step count only with lr_decay
                    return Kept{.first = o.initial_accumulator_value,
                                .key = o.lr_decay == 0 ? Key::none : Key::steps};
                  }) {}
Adagrad::Adagrad(std::vector<Tensor> parameters, const AdagradOptions& options)
    : Adagrad(std::vector<Group>{{std::move(parameters), options}}) {}

void Adagrad::update(const Batch& batch, const detail::Update& what) {
  launch_update("Adagrad", batch, what, &KernelTable::adagrad, key_at_replay(batch),
                [this, group = batch.group](AdagradArgs& args, std::int64_t key) {
                  const AdagradOptions& o = options(group);
                  args.lr = o.lr / (1 + static_cast<double>(key) * o.lr_decay);
                  args.eps = o.eps;
                  args.weight_decay = o.weight_decay;
                  args.maximize = o.maximize;
                });
}

}  // namespace braid::optim
