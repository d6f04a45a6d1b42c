#include <braid/parallel/communicator.hpp>

#include <braid/core/error.hpp>

namespace braid::parallel {
namespace {

void check_items(const char* op, std::span<const BufferView> buffers, std::span<const Device> devices) {
  if (buffers.size() % devices.size() != 0)
    throw ArgumentError(str(op, ": expected ", devices.size(), " buffers an item, one for each device, got ", buffers.size(), " in all"));
}

void check_buffer(const char* op, std::size_t item, const BufferView& buffer, const BufferView& like, Device device) {
  if (buffer.device != device) throw ArgumentError(str(op, ": expected the buffer of item ", item, " on ", device, ", got ", buffer.device));
  if (buffer.dtype != like.dtype || buffer.count != like.count || buffer.count < 0 || (!buffer.data && buffer.count))
    throw ArgumentError(str(op, ": expected ", like.count, " elements of ", like.dtype, " for item ", item, " on ", device, ", got ", buffer.count, " of ",
                            buffer.dtype, buffer.data ? "" : " at no address"));
}

}  // namespace

Communicator::Communicator(std::vector<Device> devices, int size) : devices_(std::move(devices)), size_(size) {}

void Communicator::broadcast(std::span<const BufferView> buffers) {
  check_items("broadcast", buffers, devices_);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    check_buffer("broadcast", i / devices_.size(), buffers[i], buffers[i - i % devices_.size()], devices_[i % devices_.size()]);
  if (size_ > 1) do_broadcast(buffers);
}

void Communicator::reduce(std::span<const BufferView> buffers, std::span<const BufferView> results) {
  check_items("reduce", buffers, devices_);
  if (results.size() != buffers.size() / devices_.size())
    throw ArgumentError(str("reduce: expected ", buffers.size() / devices_.size(), " results, one for each item, got ", results.size()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    check_buffer("reduce", i, results[i], results[i], devices_.front());
    if (!is_floating(results[i].dtype)) throw DTypeError(str("reduce: expected floating point, got ", results[i].dtype, " for item ", i));
    bool any = results[i].count == 0;
    for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
      const BufferView& buffer = buffers[i * devices_.size() + rank];
      if (!buffer.data && !buffer.count) continue;
      check_buffer("reduce", i, buffer, results[i], devices_[rank]);
      any = true;
    }
    if (!any) throw ArgumentError(str("reduce: expected data from at least one device for item ", i, ", got none"));
  }
  do_reduce(buffers, results);  // also in a group of one: the result may be elsewhere
}

}  // namespace braid::parallel
