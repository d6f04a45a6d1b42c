#include <braid/core/error.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/nn/optim/adadelta.hpp>

namespace braid::optim {
namespace {

const std::vector<Adadelta::Group>& checked(const std::vector<Adadelta::Group>& groups) {
  for (const auto& [parameters, o] : groups) {
    detail::check_at_least_0("Adadelta", "lr", o.lr);
    if (!(o.rho >= 0 && o.rho <= 1))
      throw ArgumentError(str("Adadelta: expected 0 <= rho <= 1, got ", o.rho));
    detail::check_at_least_0("Adadelta", "eps", o.eps);
    detail::check_at_least_0("Adadelta", "weight_decay", o.weight_decay);
  }
  return groups;
}

}  // namespace

Adadelta::Adadelta(const std::vector<Group>& groups)
    : WithOptions({"Adadelta", braid_state}, checked(groups),
                  [](const AdadeltaOptions&) { return Kept{}; }) {}
Adadelta::Adadelta(std::vector<Tensor> parameters, const AdadeltaOptions& options)
    : Adadelta(std::vector<Group>{{std::move(parameters), options}}) {}

void Adadelta::compute(Values& values, std::size_t group, std::int64_t) const {
  const AdadeltaOptions& o = options(group);
  Tensor& square_avg = values.m;
  Tensor& acc_delta = values.v;
  Tensor g = o.maximize ? neg(values.g) : values.g;
  if (o.weight_decay != 0) g = add(g, values.p, o.weight_decay);
  square_avg = add(mul(square_avg, o.rho), square(g), 1 - o.rho);
  const Tensor delta = sqrt(add(acc_delta, o.eps)) / sqrt(add(square_avg, o.eps)) * g;
  acc_delta = add(mul(acc_delta, o.rho), square(delta), 1 - o.rho);
  values.p = sub(values.p, delta, o.lr);
}

}  // namespace braid::optim
