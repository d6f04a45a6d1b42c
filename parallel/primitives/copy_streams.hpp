#pragma once
#include <memory>

#include <braid/core/stream.hpp>
#include <braid/core/tensor.hpp>

namespace braid::parallel {

/// The background copy stream of a device: one a device, made at its first use, kept for the
/// process. Throws what make_stream throws.
[[nodiscard]] const std::shared_ptr<Stream>& copy_stream(Device device);

/// The stream of a device that sums over devices run on beside its other work; likewise.
[[nodiscard]] const std::shared_ptr<Stream>& communication_stream(Device device);

/// x on the device, without history. A copy to a device with a queue of its own is made on that
/// device's copy stream: it does not wait for what the device has queued. The device's current
/// stream, which alone uses the copy, goes on after it; the host waits for nothing.
[[nodiscard]] Tensor copy_in_background(const Tensor& x, Device device);

}  // namespace braid::parallel
