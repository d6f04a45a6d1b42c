#pragma once

namespace ptx {

/// Thrown where a test comes to a kernel whose file was not compiled for this sample.
struct NotSampled {};

}  // namespace ptx
