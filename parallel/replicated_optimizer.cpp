#include <braid/parallel/replicated_optimizer.hpp>

#include <algorithm>
#include <exception>
#include <limits>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/worker.hpp>
#include <braid/core/trace.hpp>

#include "primitives/broadcast.hpp"
#include "primitives/views.hpp"

namespace braid::parallel::detail {

bool sum_gradients(ReplicatedParameters& replicas) {
  const NoGrad guard;
  const auto& copies = replicas.parameters();
  const std::size_t ranks = copies.size(), count = copies.front().size();
  std::vector<std::size_t> which;  // parameters with a gradient on another device than the first
  for (std::size_t k = 0; k < count; ++k) {
    bool elsewhere = false;
    for (std::size_t rank = 1; rank < ranks; ++rank)
      elsewhere = elsewhere || copies[rank][k].grad().defined();
    if (elsewhere) which.push_back(k);
  }
  // On asynchronous devices the sums of a bucket are computed in a flat buffer per device. Summing
  // one bucket at a time avoids a second buffer for all gradients.
  const std::size_t most = all_asynchronous(replicas.devices())
                               ? replicas.bucket_bytes()
                               : std::numeric_limits<std::size_t>::max();
  for (std::size_t begin = 0, end = 0; begin < which.size(); begin = end) {
    const auto at = [&](std::size_t i) -> const Tensor& { return copies.front()[which[i]]; };
    for (std::size_t bytes = 0; end < which.size(); ++end) {
      const std::size_t more = bytes_of(at(end));
      if (end > begin &&
          (more > most - std::min(bytes, most) || at(end).dtype() != at(begin).dtype()))
        break;
      bytes += more;
    }
    std::vector<Tensor> parts(ranks * (end - begin));
    for (std::size_t rank = 0; rank < ranks; ++rank)
      for (std::size_t i = begin; i < end; ++i)
        parts[rank * (end - begin) + i - begin] = copies[rank][which[i]].grad();
    const std::vector<Tensor> sums = reduce_tensors(parts, replicas.devices());
    for (std::size_t i = begin; i < end; ++i) {
      copies[0][which[i]].set_grad(sums[i - begin]);
      for (std::size_t rank = 1; rank < ranks; ++rank) copies[rank][which[i]].set_grad({});
    }
  }
  return !which.empty();
}

void follow_first(ReplicatedParameters& replicas, const std::vector<optim::Optimizer*>& optimizers,
                  std::int64_t& loads) {
  const optim::Optimizer& first = *optimizers.front();
  if (first.loads() != loads) {
    const StateDict state = state_dict(first);
    for (std::size_t i = 1; i < optimizers.size(); ++i) load_state_dict(*optimizers[i], state);
    replicas.set_inconsistent(false);
    loads = first.loads();
  }
  for (std::size_t i = 1; i < optimizers.size(); ++i) optimizers[i]->follow(first);
}

void step_together(ReplicatedParameters& replicas,
                   const std::vector<optim::Optimizer*>& optimizers) {
  const NoGrad guard;
  if (replicas.inconsistent())
    throw Error(
        "ReplicatedOptimizer: expected optimizers that have taken the same steps, got a step that "
        "failed on one device after others had taken it; load_state makes them equal");
  const std::size_t count = optimizers.size() < 2 ? 0 : optimizers[0]->parameters().size();
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t first = optimizers[0]->steps(k);
    for (std::size_t rank = 1; rank < optimizers.size(); ++rank)
      if (const std::int64_t other = optimizers[rank]->steps(k); other != first)
        throw Error(str("ReplicatedOptimizer: expected optimizers that have taken the same steps, ",
                        "got ", first, " of parameter ", k, " on ", replicas.devices()[0], " and ",
                        other, " on ", replicas.devices()[rank],
                        ", as after a step of main() alone; load_state makes them equal"));
  }
  sum_gradients(replicas);
  replicas.refresh_for_step();  // writes to the model since the forward
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
  const std::vector<std::vector<Tensor>> everywhere = broadcast_tensors(
      sums, devices,
      {.bucket_bytes = replicas.bucket_bytes(), .traced = {"send sums", phase::reduce}});
  // Only the first device may keep the sums, also after an error: gradients left on the others
  // would be counted again.
  struct Sums {
    const std::vector<std::vector<Tensor>>& copies;
    const std::vector<std::size_t>& which;
    ~Sums() {
      for (std::size_t rank = 1; rank < copies.size(); ++rank)
        for (const std::size_t k : which) copies[rank][k].set_grad({});
    }
  };
  std::vector<std::exception_ptr> errors(devices.size());
  const auto on_all = [&](void (optim::Optimizer::*half)()) {
    run_on_devices(devices, [&](std::size_t rank) {
      const trace::Span span("optimizer", phase::optimizer, devices[rank],
                             static_cast<std::int32_t>(rank));
      try {
        (optimizers[rank]->*half)();
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
    for (const std::exception_ptr& error : errors)
      if (error) std::rethrow_exception(error);
  };
  {
    const Sums dropped{copies, which};
    for (std::size_t rank = 1; rank < devices.size(); ++rank)
      for (std::size_t i = 0; i < which.size(); ++i)
        copies[rank][which[i]].set_grad(everywhere[rank][i]);
    on_all(&optim::Optimizer::prepare_step);
    replicas.set_inconsistent(true);  // the steps are prepared; only a lost device can fail now
    on_all(&optim::Optimizer::finish_step);
    replicas.set_inconsistent(false);
  }
  replicas.stepped();
}

}  // namespace braid::parallel::detail
