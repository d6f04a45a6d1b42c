#pragma once
#include <braid/parallel/communicator.hpp>

namespace braid::parallel {

/// Copies and adds through the device interface, between any devices of this process.
///
/// If all memory is host memory, every worker takes an equal share of the bytes and adds directly
/// from the ranks' buffers, in one pass. Otherwise each device's worker queues its own copies, and
/// rank 0 adds from copies in its own memory. Both ways give the same bits.
///
/// Unlike in make_local_communicator, several ranks may be on one device.
class LocalCommunicator final : public Communicator {
 public:
  /// `stage`: adds from copies even if all memory is host memory.
  explicit LocalCommunicator(std::vector<Device> devices, bool stage = false);

 private:
  void do_broadcast(std::span<const BufferView> buffers) override;
  void do_reduce(std::span<const BufferView> buffers, std::span<const BufferView> results) override;
  void do_all_reduce(std::span<const BufferView> buffers) override;
  void do_all_gather(std::span<const BufferView> buffers,
                     std::span<const BufferView> results) override;
  void do_reduce_scatter(std::span<const BufferView> buffers,
                         std::span<const BufferView> results) override;

  /// Computes the sums of items; the results may be on any rank. `buffers` holds the ranks' buffers
  /// of each item, grouped by item. Every worker adds its share of the tiles, directly from the
  /// buffers.
  void sum_in_place(std::span<const BufferView> buffers, std::span<const BufferView> results);
  /// Computes the sums of items `root`, root + step, …, from copies on the device of rank `root`,
  /// where their results are too. A copy between devices is ordered after the work of both.
  void sum_staged(std::size_t root, std::size_t step, std::span<const BufferView> buffers,
                  std::span<const BufferView> results);
  bool host_ = true;             // the host can access all devices' memory
  std::vector<Device> workers_;  // each device once
};

}  // namespace braid::parallel
