#pragma once
#include <braid/parallel/communicator.hpp>

namespace braid::parallel {

/// Copies and adds over the device seam, between any devices of this process.
///
/// Where all memory is the host's, every worker takes an equal share of the bytes and adds straight from the ranks' buffers: one pass. Elsewhere each device's
/// worker queues its own copies, and rank 0 adds from copies in its own memory. Both give the same bits.
///
/// Here, unlike in make_local_communicator, several ranks may be on one device.
class LocalCommunicator final : public Communicator {
 public:
  /// `stage`: also where the memory is the host's, add from copies.
  explicit LocalCommunicator(std::vector<Device> devices, bool stage = false);

 private:
  void do_broadcast(std::span<const BufferView> buffers) override;
  void do_reduce(std::span<const BufferView> buffers, std::span<const BufferView> results) override;
  bool host_ = true;             // the host can read all devices' memory
  std::vector<Device> workers_;  // each once
};

}  // namespace braid::parallel
