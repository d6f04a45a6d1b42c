// Gives this binary two logical CPU devices, unless BRAID_CPU_DEVICES sets their number. A child
// process that tests the default number sets BRAID_TESTS_DEFAULT_DEVICES.
#include <cstdlib>

#include <braid/core/device.hpp>

namespace {

const bool two_devices = [] {
  if (std::getenv("BRAID_CPU_DEVICES") == nullptr &&
      std::getenv("BRAID_TESTS_DEFAULT_DEVICES") == nullptr)
    braid::set_cpu_device_count(2);
  return true;
}();

}  // namespace
