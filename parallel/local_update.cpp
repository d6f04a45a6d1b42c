#include <braid/parallel/local_update.hpp>

#include <exception>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/trace.hpp>
#include <braid/core/worker.hpp>

#include "communicator/local.hpp"
#include "primitives/broadcast.hpp"

namespace braid::parallel::detail {

bool sum_gradients(LocalReplicas& replicas) {
  const NoGrad guard;
  const auto& copies = replicas.parameters();
  const std::size_t ranks = copies.size(), count = copies.front().size();
  std::vector<Tensor> parts(ranks * count);
  std::vector<std::size_t> which;
  for (std::size_t k = 0; k < count; ++k) {
    bool elsewhere = false;
    for (std::size_t rank = 1; rank < ranks; ++rank) elsewhere = elsewhere || copies[rank][k].grad().defined();
    if (elsewhere) which.push_back(k);
  }
  if (which.empty()) return false;
  parts.resize(ranks * which.size());
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < which.size(); ++i) parts[rank * which.size() + i] = copies[rank][which[i]].grad();
  const std::vector<Tensor> sums = reduce_tensors(parts, replicas.devices());
  for (std::size_t i = 0; i < which.size(); ++i) {
    copies[0][which[i]].set_grad(sums[i]);
    for (std::size_t rank = 1; rank < ranks; ++rank) copies[rank][which[i]].set_grad({});
  }
  return true;
}

void step_together(LocalReplicas& replicas, std::span<optim::Optimizer* const> optimizers) {
  const NoGrad guard;
  if (replicas.torn())
    throw Error(
        "LocalUpdate: expected optimizers that have taken the same steps, got a step that failed on one device after others had taken it; load_state makes "
        "them equal");
  sum_gradients(replicas);
  replicas.refresh(replicas.parameters().front());  // what was written to the model since the forward
  const auto& copies = replicas.parameters();
  const std::vector<Device>& devices = replicas.devices();
  std::vector<Tensor> sums;
  std::vector<std::size_t> which;
  for (std::size_t k = 0; k < copies.front().size(); ++k) {
    const Tensor sum = copies.front()[k].grad();
    if (!sum.defined()) continue;
    which.push_back(k);
    sums.push_back(sum);
  }
  const std::vector<std::vector<Tensor>> everywhere = broadcast_tensors(sums, devices, {.traced = {"send sums", trace::Phase::reduce}});
  const auto drop = [&] {
    for (std::size_t rank = 1; rank < devices.size(); ++rank)
      for (const std::size_t k : which) copies[rank][k].set_grad({});
  };
  for (std::size_t rank = 1; rank < devices.size(); ++rank)
    for (std::size_t i = 0; i < which.size(); ++i) copies[rank][which[i]].set_grad(everywhere[rank][i]);
  const auto on_all = [&](void (optim::Optimizer::*half)()) {
    std::vector<std::exception_ptr> errors(devices.size());
    run_on_devices(devices, [&](std::size_t rank) {
      const trace::Span span("optimizer", trace::Phase::optimizer, devices[rank], static_cast<std::int32_t>(rank));
      try {
        (optimizers[rank]->*half)();
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
    for (const std::exception_ptr& error : errors)
      if (error) drop(), std::rethrow_exception(error);
  };
  on_all(&optim::Optimizer::prepare_step);
  replicas.set_torn(true);  // what can fail has been prepared; a lost device still may
  on_all(&optim::Optimizer::finish_step);
  replicas.set_torn(false);
  drop();
  replicas.stepped();
}

}  // namespace braid::parallel::detail
