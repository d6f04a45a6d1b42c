#include "process/nccl_agreement.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/core/internal/native_device.hpp>

#include "communicator/nccl/table.hpp"
#include "process/call.hpp"

namespace braid::parallel::process {
namespace {

template <std::size_t N> void put(std::array<char, N>& to, std::string_view text) noexcept {
  std::copy_n(text.begin(), std::min(text.size(), N - 1), to.begin());
}
template <std::size_t N> std::string text_in(const std::array<char, N>& from) {
  return {from.data(), ::strnlen(from.data(), N)};
}

/// Containers of one machine have other names, but the same boot id.
void put_host(std::array<char, 64>& host) {
  std::string id;
  if (std::ifstream file("/proc/sys/kernel/random/boot_id"); file) std::getline(file, id);
  if (id.empty()) (void)::gethostname(host.data(), host.size() - 1);
  else put(host, id);
}

/// The ranks for which `has` is true.
template <class Has> std::vector<int> those(std::span<const NcclFacts> ranks, const Has& has) {
  std::vector<int> found;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (has(ranks[r])) found.push_back(static_cast<int>(r));
  return found;
}

/// Two ranks on one GPU, which NCCL does not do; empty if there are none.
std::string shared_gpu(std::span<const NcclFacts> ranks) {
  for (std::size_t b = 0; b < ranks.size(); ++b)
    for (std::size_t a = 0; a < b; ++a)
      if (ranks[a].host == ranks[b].host && ranks[a].gpu == ranks[b].gpu &&
          !(ranks[a].shares && ranks[b].shares))
        return str("expected a GPU of its own for each rank, got rank ", a, " (",
                   text_in(ranks[a].device), ") and rank ", b, " (", text_in(ranks[b].device),
                   ") on GPU ", text_in(ranks[a].gpu), " of one machine");
  return {};
}

/// Why NCCL cannot be used; empty if it can.
std::string obstacle(std::span<const NcclFacts> ranks) {
  const auto no_gpu = those(ranks, [](const NcclFacts& f) { return f.gpu[0] == '\0'; });
  if (!no_gpu.empty()) {
    const auto first = static_cast<std::size_t>(no_gpu.front());
    return str("expected a GPU on each rank, got ", text_in(ranks[first].device), " on ",
               ranks_text(no_gpu));
  }
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].error[0] != '\0') return str("rank ", r, ": ", text_in(ranks[r].error));
  for (std::size_t r = 1; r < ranks.size(); ++r)
    if (ranks[r].version != ranks[0].version)
      return str("expected one version of NCCL, got ", nccl::version_text(ranks[0].version),
                 " on rank 0 and ", nccl::version_text(ranks[r].version), " on rank ", r);
  return shared_gpu(ranks);
}

}  // namespace

NcclFacts nccl_facts(Device device, Engine engine) noexcept {
  NcclFacts facts;
  facts.engine = static_cast<std::uint8_t>(engine);
  try {
    put(facts.device, str(device));
    put_host(facts.host);
    NativeDevice* const native = native_device(device);
    if (native == nullptr || (engine != Engine::nccl && engine != Engine::automatic)) return facts;
    put(facts.gpu, native->address());
    facts.emulated = nccl::is_linked() ? 1 : 0;
    const nccl::Functions& functions = nccl::library_functions();
    int version = 0;
    if (const nccl::Result result = functions.get_version(&version); result != nccl::kSuccess)
      throw DeviceError(str("NCCL: expected a version, got ", nccl::name_of(result)));
    facts.version = version;
    const char* const allowed = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    facts.shares =
        version >= nccl::kManyRanksOnAGpu && allowed != nullptr && std::string_view(allowed) == "1";
  } catch (const std::exception& e) {
    put(facts.error, e.what());
  }
  return facts;
}

NcclFacts failed_facts(const std::string& why) noexcept {
  NcclFacts facts;
  facts.failed = 1;
  constexpr std::string_view kPrefix = "Process: ";  // that of the agreement's error
  put(facts.error, std::string_view(why).substr(why.starts_with(kPrefix) ? kPrefix.size() : 0));
  return facts;
}

NcclAgreement agree_on_nccl(std::span<const NcclFacts> ranks) {
  NcclAgreement agreement;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].failed) {
      agreement.error = str("Process: rank ", r, " cannot start: ", text_in(ranks[r].error));
      return agreement;
    }
  const auto asking = [&](Engine engine) {
    return those(ranks, [&](const NcclFacts& f) { return f.engine == static_cast<int>(engine); });
  };
  const auto require = asking(Engine::nccl), free = asking(Engine::automatic);
  if (!require.empty() && require.size() < ranks.size()) {
    const auto others =
        those(ranks, [](const NcclFacts& f) { return f.engine != static_cast<int>(Engine::nccl); });
    agreement.error = str("Process: expected one engine, got nccl on ", ranks_text(require),
                          " and another on ", ranks_text(others));
    return agreement;
  }
  if (require.empty() && free.size() < ranks.size()) return agreement;
  const std::string why = obstacle(ranks);
  if (!require.empty()) {
    agreement.nccl = why.empty();
    if (!why.empty()) agreement.error = "Process: engine nccl: " + why;
    return agreement;
  }
  const auto real = [](const NcclFacts& f) { return f.gpu[0] != '\0' && !f.emulated; };
  if (!std::all_of(ranks.begin(), ranks.end(), real)) return agreement;
  agreement.nccl = why.empty();
  if (!why.empty())
    agreement.warning = str("Process: NCCL: ", why,
                            "; tensors of GPUs go through the host (BRAID_ENGINE=mpi or gloo asks "
                            "for it)");
  return agreement;
}

}  // namespace braid::parallel::process
