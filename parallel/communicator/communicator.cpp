#include <braid/parallel/communicator.hpp>

#include <braid/core/error.hpp>

#include "copies.hpp"

namespace braid::parallel {
namespace {

void check_items(const char* op, std::span<const BufferView> buffers,
                 std::span<const Device> devices) {
  if (buffers.size() % devices.size() != 0)
    throw ArgumentError(str(op, ": expected ", devices.size(),
                            " buffers an item, one for each device, got ", buffers.size(),
                            " in all"));
}

void check_buffer(const char* op, std::size_t item, const BufferView& buffer,
                  const BufferView& like, Device device) {
  if (buffer.device != device)
    throw ArgumentError(
        str(op, ": expected the buffer of item ", item, " on ", device, ", got ", buffer.device));
  if (buffer.dtype != like.dtype || buffer.count != like.count || buffer.count < 0 ||
      (!buffer.data && buffer.count))
    throw ArgumentError(str(op, ": expected ", like.count, " elements of ", like.dtype,
                            " for item ", item, " on ", device, ", got ", buffer.count, " of ",
                            buffer.dtype, buffer.data ? "" : " at no address"));
}

/// Checks that there is one buffer per rank, all with the dtype and count of the first one.
void check_alike(const char* op, std::span<const BufferView> buffers,
                 std::span<const Device> devices) {
  check_items(op, buffers, devices);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    check_buffer(op, i / devices.size(), buffers[i], buffers[i - i % devices.size()],
                 devices[i % devices.size()]);
}

/// Checks both like check_alike, and that a whole has `size` times the count of a part.
void check_parts(const char* op, std::span<const BufferView> whole,
                 std::span<const BufferView> part, std::span<const Device> devices, int size) {
  check_alike(op, part, devices);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    BufferView like = part[i - i % devices.size()];
    like.count *= size;
    check_buffer(op, i / devices.size(), whole[i], like, devices[i % devices.size()]);
  }
}

void check_numbers(const char* op, std::span<const BufferView> results,
                   std::span<const BufferView> buffers) {
  if (results.size() != buffers.size())
    throw ArgumentError(str(op, ": expected as many results as buffers, got ", results.size(),
                            " and ", buffers.size()));
}

void check_floating(const char* op, std::span<const BufferView> buffers, std::size_t ranks) {
  for (std::size_t i = 0; i < buffers.size(); i += ranks)
    if (!is_floating(buffers[i].dtype))
      throw DTypeError(
          str(op, ": expected floating point, got ", buffers[i].dtype, " for item ", i / ranks));
}

/// Copies buffers to separate results: all that is left to do in a group of one device.
void copy_all(std::span<const BufferView> from, std::span<const BufferView> to) {
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i].data != to[i].data)
      copy_flat(to[i].data, to[i].device, from[i].data, from[i].device, from[i].bytes());
}

}  // namespace

Communicator::Communicator(std::vector<Device> devices, int size)
    : devices_(std::move(devices)), size_(size) {}

void Communicator::broadcast(std::span<const BufferView> buffers) {
  check_alike("broadcast", buffers, devices_);
  if (size_ > 1) do_broadcast(buffers);
}

void Communicator::reduce(std::span<const BufferView> buffers,
                          std::span<const BufferView> results) {
  check_items("reduce", buffers, devices_);
  if (results.size() != buffers.size() / devices_.size())
    throw ArgumentError(str("reduce: expected ", buffers.size() / devices_.size(),
                            " results, one for each item, got ", results.size()));
  check_floating("reduce", results, 1);
  for (std::size_t i = 0; i < results.size(); ++i) {
    check_buffer("reduce", i, results[i], results[i], devices_.front());
    bool any = results[i].count == 0;
    for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
      const BufferView& buffer = buffers[i * devices_.size() + rank];
      if (!buffer.data && !buffer.count) continue;
      check_buffer("reduce", i, buffer, results[i], devices_[rank]);
      any = true;
    }
    if (!any)
      throw ArgumentError(
          str("reduce: expected data from at least one device for item ", i, ", got none"));
  }
  if (size_ > 1) do_reduce(buffers, results);
  else copy_all(buffers, results);
}

void Communicator::all_reduce(std::span<const BufferView> buffers) {
  check_alike("all_reduce", buffers, devices_);
  check_floating("all_reduce", buffers, devices_.size());
  if (size_ > 1) do_all_reduce(buffers);
}

void Communicator::all_gather(std::span<const BufferView> buffers,
                              std::span<const BufferView> results) {
  check_numbers("all_gather", results, buffers);
  check_parts("all_gather", results, buffers, devices_, size_);
  if (size_ > 1) do_all_gather(buffers, results);
  else copy_all(buffers, results);
}

void Communicator::reduce_scatter(std::span<const BufferView> buffers,
                                  std::span<const BufferView> results) {
  check_numbers("reduce_scatter", results, buffers);
  check_parts("reduce_scatter", buffers, results, devices_, size_);
  check_floating("reduce_scatter", results, devices_.size());
  if (size_ > 1) do_reduce_scatter(buffers, results);
  else copy_all(buffers, results);
}

}  // namespace braid::parallel
