#pragma once
#include <memory>

#include <braid/core/stream.hpp>
#include <braid/core/tensor.hpp>

namespace braid::parallel {

/// Returns the background copy stream of a device. It is created at its first use and kept for the
/// process. Throws what make_stream throws.
[[nodiscard]] const std::shared_ptr<Stream>& copy_stream(Device device);

/// Returns the stream of a device on which sums over devices overlap its other work. It is created
/// and kept like the copy stream. Throws what make_stream throws.
[[nodiscard]] const std::shared_ptr<Stream>& communication_stream(Device device);

/// Copies x to the device, without a graph. A copy to an asynchronous device runs on that device's
/// copy stream, so it does not wait for the device's queued work. The device's current stream waits
/// for the copy, and only that stream may use it. The host does not wait.
[[nodiscard]] Tensor copy_in_background(const Tensor& x, Device device);

}  // namespace braid::parallel
