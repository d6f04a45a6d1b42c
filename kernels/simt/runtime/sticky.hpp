#pragma once
#include <algorithm>
#include <iterator>

namespace braid::simt {

/// The codes after which a context remains usable. Given as numbers, because names differ between
/// toolkits and values do not.
inline constexpr int kHarmlessCodes[] = {
    0,                                                      // success
    1,                                                      // invalid value
    2,                                                      // memory allocation
    3,                                                      // initialization error
    4,                                                      // cudart unloading
    9,                                                      // invalid configuration
    12,                                                     // invalid pitch value
    13,                                                     // invalid symbol
    16,                                                     // invalid host pointer
    17,                                                     // invalid device pointer
    21,                                                     // invalid memcpy direction
    35,                                                     // insufficient driver
    36,                                                     // call requires a newer driver
    46,                                                     // devices unavailable
    52,                                                     // missing configuration
    69,                                                     // too many launches pending
    98,                                                     // invalid device function
    100,                                                    // no device
    101,                                                    // invalid device
    200,                                                    // invalid kernel image
    201,                                                    // device uninitialized
    209,                                                    // no kernel image for the device
    210,                                                    // already acquired
    215,                                                    // unsupported limit
    216,                                                    // device already in use
    217,                                                    // peer access unsupported
    218,                                                    // invalid PTX
    221,                                                    // no compiler for PTX
    222,                                                    // unsupported PTX version
    223,                                                    // compiling PTX is turned off
    224,                                                    // unsupported affinity
    225,                                                    // unsupported sync on the device
    302,                                                    // shared object symbol not found
    303,                                                    // shared object init failed
    304,                                                    // operating system
    400,                                                    // invalid resource handle
    401,                                                    // illegal state
    500,                                                    // symbol not found
    600,                                                    // not ready
    701,                                                    // launch out of resources
    704,                                                    // peer access already enabled
    705,                                                    // peer access not enabled
    708,                                                    // set on active process
    711,                                                    // too many peers
    712,                                                    // host memory already registered
    713,                                                    // host memory not registered
    720,                                                    // cooperative launch too large
    800,                                                    // not permitted
    801,                                                    // not supported
    802,                                                    // system not ready
    803,                                                    // system driver mismatch
    804,                                                    // compat not supported on device
    900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910,  // stream capture, timeout, graph update
    912,                                                    // invalid cluster size
    913,                                                    // function not loaded
    914, 915,                                               // invalid resource
};

/// Returns true if a device is lost after this code: CUDA says that the process must be restarted.
/// Returns true for unknown codes too. Used by the engine and by the emulation of the runtime, also
/// on a GPU.
[[nodiscard]] constexpr bool ends_device(int code) noexcept {
  return std::find(std::begin(kHarmlessCodes), std::end(kHarmlessCodes), code) ==
         std::end(kHarmlessCodes);
}

}  // namespace braid::simt
