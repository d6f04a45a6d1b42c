#include "cpu/runtime/pinning.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>

#include <braid/core/error.hpp>

namespace braid::cpu {

Pinning::Pinning(int devices) : devices_(devices) {
  if (const char* text = std::getenv("BRAID_PIN")) {
    const std::string_view value(text);
    if (!value.empty() && value != "0" && value != "1")
      throw DeviceError(str("BRAID_PIN: expected 0 or 1, got '", value.substr(0, 64), "'"));
    on_ = value == "1";
  }
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &mask)) cores_.push_back(i);
  }
  if (cores_.empty()) {  // more cores than a cpu_set_t holds: no core indices, so no pinning
    cores_.resize(std::max(1u, std::thread::hardware_concurrency()));
    on_ = false;
  }
}

int Pinning::core_of(int device, int thread, int threads) const noexcept {
  return cores_[static_cast<std::size_t>(device * threads + thread) % cores_.size()];
}

void Pinning::bind(int core) noexcept {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(core, &mask);
  ::sched_setaffinity(0, sizeof mask, &mask);
}

}  // namespace braid::cpu
