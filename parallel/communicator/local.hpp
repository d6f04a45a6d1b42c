#pragma once
#include <braid/parallel/communicator.hpp>

namespace braid::parallel {

/// Copies and adds over the device seam, between any devices of this process.
///
/// Where all memory is the host's, every worker takes an equal share of the bytes and adds straight
/// from the ranks' buffers: one pass. Elsewhere each device's worker queues its own copies, and
/// rank 0 adds from copies in its own memory. Both give the same bits.
///
/// Here, unlike in make_local_communicator, several ranks may be on one device.
class LocalCommunicator final : public Communicator {
 public:
  /// `stage`: also where the memory is the host's, add from copies.
  explicit LocalCommunicator(std::vector<Device> devices, bool stage = false);

 private:
  void do_broadcast(std::span<const BufferView> buffers) override;
  void do_reduce(std::span<const BufferView> buffers, std::span<const BufferView> results) override;
  void do_all_reduce(std::span<const BufferView> buffers) override;
  void do_all_gather(std::span<const BufferView> buffers,
                     std::span<const BufferView> results) override;
  void do_reduce_scatter(std::span<const BufferView> buffers,
                         std::span<const BufferView> results) override;

  /// Sums of items, the ranks' buffers of each in a row, wherever the results are: every worker
  /// adds its share of the tiles, straight from the buffers.
  void sum_in_place(std::span<const BufferView> buffers, std::span<const BufferView> results);
  /// The sums `root`, root + step, …, whose results are on that rank's device, from copies there. A
  /// copy between devices is ordered after the work of both.
  void sum_staged(std::size_t root, std::size_t step, std::span<const BufferView> buffers,
                  std::span<const BufferView> results);
  bool host_ = true;             // the host can read all devices' memory
  std::vector<Device> workers_;  // each once
};

}  // namespace braid::parallel
