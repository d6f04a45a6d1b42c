// Chooses the communicator of a group of devices, and keeps communicators, because they are
// expensive to create.
#include <charconv>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <braid/core/error.hpp>
#include <braid/core/internal/environment.hpp>
#include <braid/core/internal/native_device.hpp>
#include <braid/parallel/communicator.hpp>

#include "communicator/nccl/table.hpp"

namespace braid::parallel {
namespace {

struct Chosen {
  std::mutex mutex;
  std::optional<CommunicatorOptions> options;  // none: the environment has not been read
  std::map<std::vector<Device>, std::shared_ptr<Communicator>> kept;
  std::optional<bool> has_nccl;  // none: not looked for yet
  bool warned = false;
};

// Never destroyed: the communicators it keeps must not end while static objects are destroyed.
Chosen& chosen() {
  static Chosen& the_one = *new Chosen;
  return the_one;
}

CommunicatorOptions from_environment() {
  CommunicatorOptions options;
  constexpr CommunicatorKind kKinds[] = {CommunicatorKind::automatic, CommunicatorKind::local,
                                         CommunicatorKind::nccl};
  options.kind =
      kKinds[choice_from_environment("BRAID_COMMUNICATOR", {"automatic", "local", "nccl"})];
  const char* const timeout = std::getenv("BRAID_COMMUNICATOR_TIMEOUT");
  if (const std::string_view text = timeout == nullptr ? "" : timeout; !text.empty()) {
    constexpr int kMost = 1000000;  // seconds
    int seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() || seconds < 1 || seconds > kMost)
      throw ArgumentError(str("BRAID_COMMUNICATOR_TIMEOUT: expected seconds from 1 to ", kMost,
                              ", got '", text.substr(0, 64), "'"));
    options.timeout = seconds;
  }
  return options;
}

const CommunicatorOptions& options_of(Chosen& all) {
  if (!all.options) all.options = from_environment();
  return *all.options;
}

/// True if `automatic` uses NCCL: the devices are different, real GPUs.
bool real_gpus(std::span<const Device> devices) {
  std::set<int> gpus;
  for (const Device device : devices) {
    const NativeDevice* const native = native_device(device);
    if (native == nullptr || nccl::is_linked() || !gpus.insert(native->gpu()).second) return false;
  }
  return true;
}

/// Chooses the kind. Requires the lock; the caller prints `warning` after unlocking.
CommunicatorKind kind_for(Chosen& all, CommunicatorKind asked, std::span<const Device> devices,
                          std::string& warning) {
  if (devices.size() < 2) return CommunicatorKind::local;  // nothing is sent
  if (asked != CommunicatorKind::automatic) return asked;
  if (!real_gpus(devices)) return CommunicatorKind::local;
  if (!all.has_nccl) {
    try {
      (void)nccl::library_functions();
      all.has_nccl = true;
    } catch (const DeviceError& e) {
      all.has_nccl = false;
      if (!std::exchange(all.warned, true))
        warning = str(e.what(),
                      "; between GPUs Braid's own copies and sums are used "
                      "(BRAID_COMMUNICATOR=local asks for them)");
    }
  }
  return *all.has_nccl ? CommunicatorKind::nccl : CommunicatorKind::local;
}

}  // namespace

CommunicatorOptions communicator_options() {
  Chosen& all = chosen();
  const std::lock_guard lock(all.mutex);
  return options_of(all);
}

void set_communicator_options(const CommunicatorOptions& options) {
  if (!(options.timeout > 0))
    throw ArgumentError(
        str("set_communicator_options: timeout: expected more than 0 s, got ", options.timeout));
  {
    Chosen& all = chosen();
    const std::lock_guard lock(all.mutex);
    all.options = options;
  }
  reset_communicators();
}

std::shared_ptr<Communicator> communicator_over(std::span<const Device> devices) {
  std::vector<Device> group(devices.begin(), devices.end());
  Chosen& all = chosen();
  std::string warning;
  std::shared_ptr<Communicator> found;
  {
    const std::lock_guard lock(all.mutex);
    if (const auto kept = all.kept.find(group); kept != all.kept.end()) return kept->second;
    const CommunicatorOptions options = options_of(all);
    const bool local = kind_for(all, options.kind, devices, warning) == CommunicatorKind::local;
    found = local ? make_local_communicator(group) : make_nccl_communicator(group, options.timeout);
    all.kept.emplace(std::move(group), found);
  }
  if (!warning.empty()) warn(warning);  // without the lock: a warning handler may call this
  return found;
}

void reset_communicators() {
  std::map<std::vector<Device>, std::shared_ptr<Communicator>> gone;  // they end without the lock
  Chosen& all = chosen();
  const std::lock_guard lock(all.mutex);
  gone.swap(all.kept);
  all.has_nccl.reset();
}

}  // namespace braid::parallel
