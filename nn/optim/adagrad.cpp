#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>
#include <braid/nn/optim/adagrad.hpp>

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
    : WithOptions("Adagrad", checked(groups), {"", "sum", ""}) {}
Adagrad::Adagrad(std::vector<Tensor> parameters, const AdagradOptions& options)
    : Adagrad(std::vector<Group>{{std::move(parameters), options}}) {}

bool Adagrad::keeps(std::size_t, std::size_t) const noexcept { return true; }
double Adagrad::first_state(std::size_t group, std::size_t) const noexcept {
  return options(group).initial_accumulator_value;
}
/// The rate depends on a parameter's step count only with lr_decay.
std::int64_t Adagrad::batch_key(std::size_t group, std::int64_t steps) const noexcept {
  return options(group).lr_decay == 0 ? 0 : steps;
}
bool Adagrad::has_kernel(const KernelTable& kernels) const noexcept {
  return kernels.adagrad != nullptr;
}

void Adagrad::update(const Batch& batch, std::span<const OptimItem> items) {
  const AdagradOptions& o = options(batch.group);
  AdagradArgs args{};
  args.dtype = batch.dtype;
  args.items = items.data();
  args.count = static_cast<std::int64_t>(items.size());
  args.lr = o.lr / (1 + static_cast<double>(batch.key) * o.lr_decay);
  args.eps = o.eps;
  args.weight_decay = o.weight_decay;
  args.maximize = o.maximize;
  launch("Adagrad", batch.device, &KernelTable::adagrad, args);
}

}  // namespace braid::optim
