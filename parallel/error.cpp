#include <braid/parallel/error.hpp>

#include <braid/core/autograd.hpp>
#include <braid/nn/replica_group.hpp>

#include "primitives/replica_errors.hpp"

namespace braid {
namespace {

std::string replica_text(const std::vector<ReplicaError::Failure>& failures) {
  if (failures.empty())
    throw InternalError("ReplicaError: expected at least one failure, got none");
  const auto& first = failures.front();
  std::string text = str("Caught ", first.type, " in replica ", first.index, " on device ",
                         first.device, ": ", first.message);
  for (std::size_t i = 1; i < failures.size(); ++i)
    text += str("\n  also ", failures[i].type, " in replica ", failures[i].index, " on device ",
                failures[i].device, ": ", failures[i].message);
  return text;
}

}  // namespace

ReplicaError::ReplicaError(std::vector<Failure> f)
    : Error(replica_text(f)), failures(std::move(f)) {}

namespace parallel {
namespace {

class ReplicaOrigin final : public autograd::Origin {
 public:
  /// Rethrows the exception that is being handled as a ReplicaError.
  void rethrow(const autograd::Node& node) const override;
};

constexpr std::size_t kOrigins = 254;
constinit const ReplicaOrigin origins[kOrigins] = {};  // the index is the replica's

void ReplicaOrigin::rethrow(const autograd::Node& node) const {
  if (replica_group()) throw;  // a backward inside a replica's forward, which reports its errors
  const std::exception_ptr error = std::current_exception();
  try {
    throw;
  } catch (const ReplicaError&) {  // thrown by a backward inside this op's backward
    throw;
  } catch (...) {
    std::vector<ReplicaError::Failure> failures;
    failures.push_back({static_cast<std::size_t>(this - origins), node.device(),
                        exception_type(error), exception_message(error), error});
    std::throw_with_nested(ReplicaError(std::move(failures)));
  }
}

}  // namespace

const autograd::Origin* origin_of_replica(std::size_t replica) noexcept {
  return replica < kOrigins ? &origins[replica] : nullptr;
}

}  // namespace parallel
}  // namespace braid
