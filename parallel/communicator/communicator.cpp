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

/// The length of a rank's buffer or result.
enum class Length { part, whole };
enum class Types { any, floating };

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

/// Checks both like check_alike, that they have one count, and that it is that of `size` parts.
void check_wholes(const char* op, std::span<const BufferView> buffers,
                  std::span<const BufferView> results, std::span<const Device> devices, int size) {
  check_alike(op, buffers, devices);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::size_t item = i / devices.size();
    if (buffers[i].count % size != 0)
      throw ArgumentError(str(op, ": expected a multiple of ", size, " elements for item ", item,
                              ", got ", buffers[i].count));
    check_buffer(op, item, results[i], buffers[i], devices[i % devices.size()]);
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

std::span<const Device> Communicator::devices() const noexcept { return devices_; }

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

void Communicator::check_exchange(const char* op, bool whole_buffers, bool whole_results,
                                  bool floating, std::span<const BufferView> buffers,
                                  std::span<const BufferView> results) const {
  check_numbers(op, results, buffers);
  if (whole_buffers && whole_results) check_wholes(op, buffers, results, devices_, size_);
  else if (whole_buffers) check_parts(op, buffers, results, devices_, size_);
  else check_parts(op, results, buffers, devices_, size_);
  if (floating) check_floating(op, results, devices_.size());
}

#define BRAID_EXCHANGE(name, buffer, result, types)                                         \
  void Communicator::name(std::span<const BufferView> buffers,                              \
                          std::span<const BufferView> results) {                            \
    check_exchange(#name, Length::buffer == Length::whole, Length::result == Length::whole, \
                   Types::types == Types::floating, buffers, results);                      \
    if (size_ > 1) do_##name(buffers, results);                                             \
    else copy_all(buffers, results);                                                        \
  }
#include <braid/parallel/internal/collectives.def>

}  // namespace braid::parallel
