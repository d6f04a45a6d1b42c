#pragma once
#include <memory>
#include <vector>

#include "communicator/nccl/group.hpp"
#include "process/call.hpp"

namespace braid::parallel::process {

/// One rank's end of an NCCL communicator: the collectives on the memory of its GPU, on a stream of
/// their own. Used by the communicator's thread.
///
/// NCCL's own sums of 16-bit floats are rounded at each step, and its minimum loses a NaN. Sums and
/// products of 16-bit floats are therefore made in float32, which moves twice the bytes, and minima
/// and maxima of floats are left to the host engine.
class NcclRank {
 public:
  /// Meets the other ranks. Throws as nccl::Group.
  NcclRank(Device device, nccl::Remote remote, double timeout);

  /// True if the call is a collective on memory of GPUs for which NCCL keeps the guarantees. The
  /// same on all ranks whose memory is on GPUs.
  [[nodiscard]] static bool takes(const Call& call);
  /// Runs a call that it takes, after call.ready; returns when the results are there. Throws
  /// CommError and its subclasses, DeviceLostError, CudaError, OutOfMemoryError.
  void run(Call& call, Clock::time_point deadline);
  /// Ends the communicator without the other ranks.
  void abort() noexcept { group_.abort(); }

 private:
  /// The same in float32, rounded once.
  void reduce_wide(const Call& call, Clock::time_point deadline);
  /// Divides the result of a sum by the number of ranks.
  void divide(void* data, std::int64_t count, DType dtype);
  void all_to_all(const Call& call, Clock::time_point deadline);
  [[nodiscard]] bool has_result(const Call& call) const;

  const Device device_;
  const int rank_, size_;
  nccl::Group group_;
};

}  // namespace braid::parallel::process
