#include <algorithm>
#include <numeric>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/parallel/zero_redundancy_optimizer.hpp>

#include "distributed/exchange.hpp"
#include "distributed/module_sync.hpp"

namespace braid::parallel::detail {

std::vector<int> partition_parameters(std::span<const Tensor> parameters, int ranks) {
  if (parameters.empty())
    throw ArgumentError("ZeroRedundancyOptimizer: expected at least one parameter, got 0");
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return parameters[a].numel() > parameters[b].numel();
  });
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks));
  std::vector<int> owners(parameters.size());
  for (const std::size_t k : order) {
    const auto least = std::ranges::min_element(load);
    owners[k] = static_cast<int>(least - load.begin());
    *least += parameters[k].numel();
  }
  return owners;
}

int count_ranks(const ProcessCommunicator* ranks) {
  if (ranks == nullptr)
    throw ArgumentError("ZeroRedundancyOptimizer: expected a communicator, got null");
  return ranks->size();
}

void step_shares(ProcessCommunicator& ranks, optim::Optimizer* optimizer,
                 std::span<const Tensor> parameters, std::span<const int> owners) {
  std::string text;
  std::exception_ptr error;
  try {
    if (optimizer) optimizer->prepare_step();
  } catch (...) {
    error = std::current_exception();
    text = str(exception_type(error), ": ", exception_message(error));
  }
  // An optimizer that has been prepared and is not finished is prepared again by its next step.
  const auto votes = distributed::exchange_numbers(ranks, {error ? 1 : 0}, "vote");
  if (std::ranges::any_of(votes, [](const auto& vote) { return vote[0] != 0; })) {
    const auto texts = distributed::exchange_texts(ranks, text, "reasons of a failed step");
    if (error) std::rethrow_exception(error);
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
      if (!texts[rank].empty())
        throw Error(
            str("ZeroRedundancyOptimizer: step: expected all ranks to succeed, got a "
                "failure on rank ",
                rank, ": ", texts[rank], " (no parameter has changed)"));
  }
  if (optimizer) optimizer->finish_step();
  if (ranks.size() == 1) return;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    std::vector<Tensor> list;
    for (std::size_t k = 0; k < parameters.size(); ++k)
      if (owners[k] == rank) list.push_back(parameters[k]);
    distributed::broadcast_values(ranks, list, rank, true);
  }
}

}  // namespace braid::parallel::detail
