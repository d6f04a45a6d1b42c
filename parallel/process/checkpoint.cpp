#include <braid/parallel/checkpoint.hpp>

#include <algorithm>
#include <utility>

#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>

namespace braid::parallel {

training::CheckpointRanks checkpoint_ranks(std::shared_ptr<ProcessCommunicator> communicator) {
  if (!communicator) throw ArgumentError("checkpoint_ranks: expected a communicator, got null");
  const int rank = communicator->rank(), size = communicator->size();
  auto gather = [c = std::move(communicator)](std::span<const std::int64_t> values) {
    const auto n = static_cast<std::int64_t>(values.size());
    const Tensor own = make_tensor({n}, DType::int64, Device());
    const Tensor all = make_tensor({n * c->size()}, DType::int64, Device());
    std::copy(values.begin(), values.end(), own.data<std::int64_t>());
    c->start_all_gather(all, own, "checkpoint").wait();
    return all.to_vector<std::int64_t>();
  };
  return {.rank = rank, .size = size, .gather = std::move(gather)};
}

}  // namespace braid::parallel
