#pragma once
#include <cstdint>

// Errors that only a kernel can detect: an index or a label out of range, an integer division by
// zero. A kernel cannot throw, and waiting for its result would stop the host. So it does not
// access memory outside its operands, and fills in its device's record, in memory that the host
// reads. Code that synchronises with the device (stream, event, copy to the host) then calls
// throw_device_error. The first error is kept until it is thrown.
namespace braid {

class Device;
class Stream;

namespace cuda {

enum class DeviceFault : unsigned long long { none, index, division };

/// Written by kernels with atomics only (device/report.cuh), read by the host. `op` and `what` are
/// host string literals, never read by a device.
struct DeviceErrorRecord {
  unsigned long long state;  ///< 0 free, 1 being filled in, 2 complete
  unsigned long long fault, op, what;
  unsigned long long low, high, got, position;  ///< two's complement
};

/// Returns the record of the stream's device, in pinned memory that its kernels can write. The
/// first call for a device allocates it and may throw like an allocation.
[[nodiscard]] DeviceErrorRecord* device_error_record(Stream& stream);

/// Throws the error that a kernel of the device reported, and frees the record: IndexError
/// `gather_rows: expected indices in [-5, 5), got 7 at position 2`, or ArgumentError for a
/// division. Does nothing if there is no error. Call it after a wait; before, the kernel may still
/// run.
void throw_device_error(Device device);

}  // namespace cuda
}  // namespace braid
