#pragma once

namespace braid::cuda {

/// Registers the libraries that are linked into the program and not opened (linked_library.hpp of
/// core). The build chooses the source that defines it:
///   linked_libraries_real.cpp   none
///   linked_libraries_fake.cpp   the fake NCCL for emulated devices
void register_linked_libraries();

}  // namespace braid::cuda
