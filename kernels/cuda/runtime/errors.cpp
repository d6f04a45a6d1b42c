#include "cuda/runtime/errors.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include <braid/core/error.hpp>

#include "cuda/runtime/report.hpp"

namespace braid::cuda {
namespace {

// The codes after which a context works on, by number: their names differ between toolkits, their values do not.
constexpr int kHarmless[] = {
    0,                                                           // success
    1,                                                           // invalid value
    2,                                                           // memory allocation
    3,                                                           // initialization error
    4,                                                           // cudart unloading
    9,                                                           // invalid configuration
    12,                                                          // invalid pitch value
    13,                                                          // invalid symbol
    17,                                                          // invalid device pointer
    21,                                                          // invalid memcpy direction
    35,                                                          // insufficient driver
    46,                                                          // devices unavailable
    98,                                                          // invalid device function
    100,                                                         // no device
    101,                                                         // invalid device
    200,                                                         // invalid kernel image
    201,                                                         // device uninitialized
    209,                                                         // no kernel image for the device
    215,                                                         // unsupported limit
    216,                                                         // device already in use
    217,                                                         // peer access unsupported
    218,                                                         // invalid PTX
    222,                                                         // unsupported PTX version
    302,                                                         // shared object init failed
    304,                                                         // operating system
    400,                                                         // invalid resource handle
    401,                                                         // illegal state
    500,                                                         // symbol not found
    600,                                                         // not ready
    701,                                                         // launch out of resources
    704,                                                         // peer access already enabled
    705,                                                         // peer access not enabled
    708,                                                         // set on active process
    711,                                                         // too many peers
    712,                                                         // host memory already registered
    713,                                                         // host memory not registered
    800,                                                         // not permitted
    801,                                                         // not supported
    802,                                                         // system not ready
    803,                                                         // system driver mismatch
    804,                                                         // compat not supported on device
    900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 911,  // stream capture, timeout, graph update, external device
};

constexpr int kUnloading = 4;  // the process ends: its memory goes with it

std::string said(cudaError_t error) { return str(cudaGetErrorName(error), " (", cudaGetErrorString(error), ")"); }

[[noreturn]] void throw_lost(const char* call, const Gpu& gpu, Device device) {
  const auto code = static_cast<cudaError_t>(gpu.lost_code());
  std::string text = str(call, ": expected a device that works, got ", device, " lost to ", said(code), "; this process cannot use it again");
  if (const std::string launches = gpu.recent_launches(); !launches.empty()) text += "\nlast launches: " + launches;
  text += last_report();
  throw DeviceLostError(text, device, gpu.lost_code(), cudaGetErrorName(code));
}

}  // namespace

bool is_sticky(int code) noexcept { return std::find(std::begin(kHarmless), std::end(kHarmless), code) == std::end(kHarmless); }

void require_working(const Gpu& gpu, Device device) {
  if (gpu.lost()) [[unlikely]]
    throw_lost(str(device).c_str(), gpu, device);
}

bool check_memory(cudaError_t error, const char* call, Gpu& gpu, Device device) {
  if (error == cudaSuccess) [[likely]]
    return true;
  if (is_sticky(static_cast<int>(error))) {
    gpu.lose(static_cast<int>(error));
    throw_lost(call, gpu, device);
  }
  (void)cudaGetLastError();  // reported here; the next launch must not find it again
  if (error == cudaErrorMemoryAllocation) return false;
  throw CudaError(str(call, ": expected success on ", device, ", got ", said(error), last_report()), device, static_cast<int>(error), cudaGetErrorName(error));
}

void check(cudaError_t error, const char* call, Gpu& gpu, Device device) {
  if (check_memory(error, call, gpu, device)) return;
  throw OutOfMemoryError(device, 0, 0, 0, 0, str(call, ": ", said(error)));
}

bool settle(cudaError_t error, Gpu& gpu) noexcept {
  if (error == cudaSuccess) return true;
  const int code = static_cast<int>(error);
  if (is_sticky(code)) gpu.lose(code);
  else if (code != kUnloading) (void)cudaGetLastError();
  return false;
}

}  // namespace braid::cuda
