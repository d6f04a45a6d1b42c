// What the parts of a checkpoint share: the rates of an optimizer's state, and errors.
#include <cmath>
#include <limits>

#include <braid/core/error.hpp>
#include <braid/nn/internal/state_fields.hpp>
#include <braid/nn/training/checkpoint.hpp>

namespace braid::training::detail {
namespace {

constexpr const char *kLr = "lr", *kMomenta = "momenta";
constexpr double kKeep = std::numeric_limits<double>::quiet_NaN();  // nothing to set

/// Takes an entry out of an optimizer's state. Throws unless it is one float64 for each group.
std::vector<double> take(StateDict& dict, const char* name, std::size_t groups) {
  const Tensor* const found = dict.find(name);
  if (found == nullptr || !found->defined() || found->dtype() != DType::float64 ||
      found->numel() != static_cast<std::int64_t>(groups))
    throw ArgumentError(str("Checkpoint: expected the optimizer's state to hold ", name, ", ",
                            groups, " of float64, got ",
                            found == nullptr ? "none" : "another tensor"));
  std::vector<double> list = found->to_vector<double>();
  dict.erase(name);
  return list;
}

}  // namespace

void save_rates(const optim::Optimizer& optimizer, StateDict& dict) {
  std::vector<double> lr, momenta;
  for (std::size_t g = 0; g < optimizer.groups(); ++g) {
    lr.push_back(optimizer.lr(g));
    momenta.push_back(optimizer.has_momentum(g) ? optimizer.momentum(g) : kKeep);
  }
  dict.set(kLr, tensor(lr, {.device = Device(), .dtype = DType::float64}));
  dict.set(kMomenta, tensor(momenta, {.device = Device(), .dtype = DType::float64}));
}

Rates split_rates(const optim::Optimizer& optimizer, std::span<const StateDict::value_type> dict,
                  StateDict& rest) {
  rest = StateDict(std::vector<StateDict::value_type>(dict.begin(), dict.end()));
  Rates rates{take(rest, kLr, optimizer.groups()), {}};
  for (const double lr : rates.lr)
    if (!optim::detail::is_rate(lr))
      throw ArgumentError(
          str("Checkpoint: expected learning rates >= 0 in the optimizer's state, got ", lr));
  if (!rest.contains(kMomenta)) return rates;
  rates.momenta = take(rest, kMomenta, optimizer.groups());
  for (std::size_t g = 0; g < rates.momenta.size(); ++g) {
    double& momentum = rates.momenta[g];
    if (!optimizer.has_momentum(g)) {
      if (!std::isnan(momentum))
        throw ArgumentError(str("Checkpoint: expected no momentum of group ", g,
                                ", which was made without, got ", momentum));
    } else if (momentum == optimizer.momentum(g)) {
      momentum = kKeep;  // set_momentum refuses 1 and more, with which it may have been made
    } else if (!(momentum >= 0 && momentum < 1)) {
      throw ArgumentError(str("Checkpoint: expected 0 <= momentum < 1 of group ", g,
                              " in the optimizer's state, got ", momentum));
    }
  }
  return rates;
}

void restore_rates(optim::Optimizer& optimizer, const Rates& rates) {
  for (std::size_t g = 0; g < rates.lr.size(); ++g) optimizer.set_lr(g, rates.lr[g]);
  for (std::size_t g = 0; g < rates.momenta.size(); ++g)
    if (!std::isnan(rates.momenta[g])) optimizer.set_momentum(g, rates.momenta[g]);
}

void nothing_to_save(const char* signature) {
  throw ArgumentError(str("Checkpoint: expected something to save in ",
                          ::braid::detail::short_type_name(signature),
                          ", got a tree without tensors"));
}

}  // namespace braid::training::detail
