// Eight logical CPU devices for this binary, unless BRAID_CPU_DEVICES says how many; and all
// warnings, kept.
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>

#include <braid/core/error.hpp>

#include "group.hpp"

namespace {

std::mutex mutex;
std::vector<std::string>& texts() {
  static auto& list = *new std::vector<std::string>;
  return list;
}

const bool ready = [] {
  if (std::getenv("BRAID_CPU_DEVICES") == nullptr) braid::set_cpu_device_count(8);
  braid::set_warning_handler([](std::string_view text) {
    const std::lock_guard lock(mutex);
    texts().emplace_back(text);
  });
  return true;
}();

}  // namespace

int braid::test::warnings_with(std::string_view text) {
  const std::lock_guard lock(mutex);
  return static_cast<int>(std::count(texts().begin(), texts().end(), text));
}
