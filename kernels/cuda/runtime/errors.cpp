#include "cuda/runtime/errors.hpp"

#include <string>

#include <braid/core/error.hpp>

#include "cuda/runtime/report.hpp"
#include "simt/runtime/sticky.hpp"

namespace braid::cuda {
namespace {

constexpr int kUnloading = 4;  // the process is ending, and its memory with it

std::string said(cudaError_t error) {
  return str(cudaGetErrorName(error), " (", cudaGetErrorString(error), ")");
}

[[noreturn]] void throw_lost(const char* call, const Gpu& gpu, Device device) {
  const auto code = static_cast<cudaError_t>(gpu.lost_code());
  std::string text = str(call, ": expected a device that works, got ", device, " lost to ",
                         said(code), "; this process cannot use it again");
  if (const std::string launches = gpu.recent_launches(device); !launches.empty())
    text += "\n" + launches;
  text += report_of_loss(gpu.ordinal());
  throw DeviceLostError(text, device, gpu.lost_code(), cudaGetErrorName(code));
}

}  // namespace

bool is_sticky(int code) noexcept { return simt::ends_device(code); }

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
  (void)cudaGetLastError();  // reported here; the next launch must not report it again
  if (error == cudaErrorMemoryAllocation) return false;
  throw CudaError(
      str(call, ": expected success on ", device, ", got ", said(error), report_of_call()), device,
      static_cast<int>(error), cudaGetErrorName(error));
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
