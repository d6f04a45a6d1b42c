// The state of an optimizer that is divided among ranks, as that of the whole one.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/parallel/zero_redundancy_optimizer.hpp>

#include "distributed/exchange.hpp"

namespace braid::parallel::detail {
namespace {

constexpr const char* kName = "ZeroRedundancyOptimizer";
constexpr std::string_view kSteps = "steps";

/// The parts of a name such as `exp_avg.3`.
struct Slot {
  std::string_view field;  // with the dot
  std::size_t parameter = 0;
};
std::optional<Slot> slot_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  Slot slot{name.substr(0, dot + 1)};
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + dot + 1, end, slot.parameter);
  if (error != std::errc() || stop != end) return {};
  return slot;
}

/// Throws on all ranks if they do not all pass the same rank, and one that exists.
void check_target(const std::vector<std::vector<std::int64_t>>& all) {
  std::string list;
  bool good = true;
  for (const auto& of_rank : all) {
    const std::int64_t to = of_rank.front();
    good =
        good && to == all.front().front() && to >= 0 && to < static_cast<std::int64_t>(all.size());
    list += str(list.empty() ? "" : ", ", to);
  }
  if (!good)
    throw ArgumentError(str(kName, ": consolidate_state_dict: expected the same rank below ",
                            all.size(), " on all ranks, got ", list));
}

}  // namespace

ShareMap map_share(std::span<const Tensor> parameters, std::span<const int> owners, int rank,
                   const optim::Optimizer& whole, const optim::Optimizer* mine) {
  const auto wrong = [](const std::string& got) {
    return ArgumentError(
        str(kName, ": expected `make` to return an optimizer of the parameters it gets, ", got));
  };
  std::unordered_map<const TensorImpl*, std::size_t> numbers;
  for (std::size_t k = 0; k < parameters.size(); ++k) numbers[parameters[k].id()] = k;
  ShareMap map;
  std::unordered_map<const TensorImpl*, std::size_t> places;
  for (const Tensor& p : whole.parameters()) {
    const auto number = numbers.find(p.id());
    if (number == numbers.end()) throw wrong("got one of another tensor");
    if (owners[number->second] == rank) places[p.id()] = map.owners.size();
    map.owners.push_back(owners[number->second]);
  }
  if (!mine) return map;
  for (const Tensor& p : mine->parameters()) {
    const auto place = places.find(p.id());
    if (place == places.end())
      throw wrong(
          "got one of a tensor that the optimizer of all parameters does not have, or another rank "
          "updates");
    map.places.push_back(place->second);
  }
  if (map.places.size() != places.size())
    throw wrong(str("got ", map.places.size(), " of ", places.size(), " for this rank"));
  if (mine->groups() != whole.groups())
    throw ArgumentError(str(kName, ": expected `make` to return ", whole.groups(),
                            " groups for any list of parameters, got ", mine->groups()));
  return map;
}

StateDict consolidate(ProcessCommunicator& ranks, const ShareMap& map,
                      const optim::Optimizer& whole, const tree::Flat& whole_state,
                      const StateDict& mine, int to) {
  const NoGrad guard;
  const std::vector<Tensor>& parameters = whole.parameters();
  std::vector<std::string> names;  // of all states that there may be
  for (const tree::Leaf& leaf : whole_state.leaves)
    if (std::string name = whole_state.path(leaf); slot_of(name)) names.push_back(std::move(name));
  std::map<std::string, Tensor> own;  // with the names of the whole optimizer
  std::vector<std::int64_t> counts(parameters.size());
  for (const auto& [name, tensor] : mine) {
    if (const auto slot = slot_of(name)) {
      const std::size_t k = map.places.at(slot->parameter);
      own[str(slot->field, k)] =
          tensor.to(parameters[k].device(), parameters[k].dtype()).contiguous();
    } else {
      const auto list = tensor.to_vector<std::int64_t>();
      for (std::size_t i = 0; i < list.size(); ++i) counts[map.places.at(i)] = list[i];
    }
  }

  // What each rank has: where to, then a flag for each name, then the counts.
  std::vector<std::int64_t> list{to};
  for (const std::string& name : names) list.push_back(own.contains(name) ? 1 : 0);
  list.insert(list.end(), counts.begin(), counts.end());
  const auto all = distributed::exchange_numbers(ranks, list, "state of the optimizer");
  check_target(all);
  const auto there = [&](std::size_t n, int owner) {
    return all[static_cast<std::size_t>(owner)][n + 1] != 0;
  };

  // Everything is allocated before the first rank sends.
  StateDict result;
  std::exception_ptr error;
  if (ranks.rank() == to) {
    try {
      for (std::size_t n = 0; n < names.size(); ++n) {
        const std::size_t k = slot_of(names[n])->parameter;
        if (there(n, map.owners[k]))
          result.set(names[n], make_tensor(parameters[k].shape(), parameters[k].dtype(), Device()));
      }
      const Tensor steps =
          make_tensor({static_cast<std::int64_t>(parameters.size())}, DType::int64, Device());
      for (std::size_t k = 0; k < parameters.size(); ++k)
        steps.data<std::int64_t>()[k] =
            all[static_cast<std::size_t>(map.owners[k])][1 + names.size() + k];
      result.set(std::string(kSteps), steps);
    } catch (...) {
      error = std::current_exception();
    }
  }
  const auto failed = distributed::exchange_numbers(ranks, {error ? 1 : 0}, "vote");
  if (error) std::rethrow_exception(error);
  if (failed[static_cast<std::size_t>(to)][0] != 0)
    throw Error(str(kName, ": consolidate_state_dict: expected memory for the state on rank ", to,
                    ", got a failure; its error says why"));

  for (std::size_t n = 0; n < names.size(); ++n) {
    const std::size_t k = slot_of(names[n])->parameter;
    const int owner = map.owners[k];
    if (!there(n, owner)) continue;
    if (ranks.rank() == owner && owner != to) {
      ranks.start_send(own.at(names[n]), to, 0, names[n]).wait();
    } else if (ranks.rank() == to) {
      const Tensor& kept = result.at(names[n]);
      if (owner == to) {
        kept.copy_(own.at(names[n]));
      } else if (parameters[k].device() == kept.device()) {
        ranks.start_recv(kept, owner, 0, names[n]).wait();
      } else {
        const Tensor got = make_tensor(kept.shape(), kept.dtype(), parameters[k].device());
        ranks.start_recv(got, owner, 0, names[n]).wait();
        kept.copy_(got);
      }
    }
  }
  return result;
}

LoadReport load_share(const ShareMap& map, const optim::Optimizer& whole, optim::Optimizer* mine,
                      std::span<const StateDict::value_type> dict, const LoadOptions& options) {
  if (dict.empty())
    throw ArgumentError(str(kName,
                            ": load_state_dict: expected the state of the whole optimizer on every "
                            "rank, got an empty dict; consolidate_state_dict(to) returns the state "
                            "on rank `to` only"));
  LoadReport report = whole.check_state(dict, options);
  if (!mine) return report;
  std::unordered_map<std::size_t, std::size_t> at;  // by parameter of the whole optimizer
  for (std::size_t i = 0; i < map.places.size(); ++i) at[map.places[i]] = i;
  std::vector<StateDict::value_type> share;
  for (const auto& [name, tensor] : dict) {
    if (name == kSteps) {
      const auto all = tensor.to_vector<std::int64_t>();
      const Tensor steps =
          make_tensor({static_cast<std::int64_t>(map.places.size())}, DType::int64, Device());
      for (std::size_t i = 0; i < map.places.size(); ++i)
        steps.data<std::int64_t>()[i] = all[map.places[i]];
      share.emplace_back(name, steps);
    } else if (const auto slot = slot_of(name)) {
      if (const auto found = at.find(slot->parameter); found != at.end())
        share.emplace_back(str(slot->field, found->second), tensor);
    }
  }
  (void)mine->load_state(share, options);
  return report;
}

}  // namespace braid::parallel::detail
