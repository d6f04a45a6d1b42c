#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>

namespace braid::parallel {

/// `count` dense elements in a device's memory; not owned.
struct BufferView {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::float32;
  Device device;
  [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(count) * size_of(dtype); }
};

/// Collective operations over a fixed group of devices. The rank of a device is its place in the group; rank 0 is the root.
///
/// A call takes any number of items at once, so that an implementation can start them together: `buffers` holds, item after item, one view for each rank of
/// this process (`buffers[item * devices().size() + i]` lies on `devices()[i]`); the views of an item have one dtype and count. The work is queued on the
/// current stream of each device, after what was queued there before. In a group of one nothing moves. One thread at a time uses a communicator. All check
/// their buffers first; a wrong one throws ArgumentError and nothing has been changed. What is written through a pointer leaves no trace: who writes into a
/// tensor's memory that others keep copies of (the weights of a DataParallel) says so by `tensor.storage()->bump_version()`.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Number of ranks, in all processes.
  [[nodiscard]] int size() const noexcept { return size_; }
  /// The devices of this process's ranks, in rank order.
  [[nodiscard]] std::span<const Device> devices() const noexcept { return devices_; }

  /// Copies rank 0's buffer of each item into the other ranks' buffers.
  void broadcast(std::span<const BufferView> buffers);

  /// Adds the ranks' buffers of each item: `results[item]`, on rank 0's device, gets the sum and may be rank 0's own buffer. The others are only read.
  /// A buffer without data (null, count 0) counts as zeros; an item needs at least one with data. Floating point types.
  /// The order of the additions is fixed: neighbours first, then pairs at distance 2, 4, … of the rank: ((0+1)+(2+3))+((4+5)+6).
  void reduce(std::span<const BufferView> buffers, std::span<const BufferView> results);

 protected:
  Communicator(std::vector<Device> devices, int size);

 private:
  virtual void do_broadcast(std::span<const BufferView> buffers) = 0;
  virtual void do_reduce(std::span<const BufferView> buffers, std::span<const BufferView> results) = 0;

  std::vector<Device> devices_;
  int size_;
};

/// A group of devices of this process, by copies and adds over the seam: works between any devices.
/// Throws DeviceError for a device that does not exist or stands in the list twice, ArgumentError for an empty list.
[[nodiscard]] std::unique_ptr<Communicator> make_local_communicator(std::vector<Device> devices);

}  // namespace braid::parallel
