#pragma once

namespace ptx {

/// Thrown if a test needs a kernel whose file was not compiled for this sample.
struct NotSampled {};

}  // namespace ptx
