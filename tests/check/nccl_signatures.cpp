// Compiled with NCCL's header, it checks that our declarations equal those of nccl.h. When run, it
// opens the library if it is installed, and calls the functions that need no GPU.
#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iterator>
#include <string>
#include <type_traits>

#include "communicator/nccl/table.hpp"
#include "same_signature.hpp"

// We declare two structs of our own.
template <> struct braid::check::Plain<ncclUniqueId> {
  static_assert(sizeof(ncclUniqueId) == sizeof(parallel::nccl::UniqueId) &&
                alignof(ncclUniqueId) == alignof(parallel::nccl::UniqueId));
  static_assert(std::is_trivially_copyable_v<parallel::nccl::UniqueId>);
  using Type = parallel::nccl::UniqueId;
};
template <> struct braid::check::Plain<ncclConfig_t> {
  using Type = parallel::nccl::Config;
};

namespace {

namespace ours = braid::parallel::nccl;
using braid::check::kSame;

#define BRAID_NCCL(member, name, Result, parameters) \
  static_assert(kSame<decltype(&name), decltype(ours::Functions::member)>);
#include <braid/core/internal/nccl_functions.def>

static_assert(ours::kSuccess == ncclSuccess &&
              ours::kUnhandledCudaError == ncclUnhandledCudaError &&
              ours::kInvalidUsage == ncclInvalidUsage);
static_assert(ours::kRemoteError == ncclRemoteError && ours::kInProgress == ncclInProgress);
static_assert(ours::kUint8 == ncclUint8 && ours::kInt32 == ncclInt32 && ours::kInt64 == ncclInt64 &&
              ours::kFloat16 == ncclFloat16);
static_assert(ours::kFloat32 == ncclFloat32 && ours::kFloat64 == ncclFloat64 &&
              ours::kBfloat16 == ncclBfloat16 && ours::kSum == ncclSum);
static_assert(ours::kProduct == ncclProd && ours::kMax == ncclMax && ours::kMin == ncclMin);

// Our config is shorter: its fields have the same offsets, and unset fields the same values.
#define SAME_FIELD(mine, theirs) \
  static_assert(offsetof(ours::Config, mine) == offsetof(ncclConfig_t, theirs))
SAME_FIELD(size, size);
SAME_FIELD(magic, magic);
SAME_FIELD(version, version);
SAME_FIELD(blocking, blocking);
SAME_FIELD(cga_cluster_size, cgaClusterSize);
SAME_FIELD(min_ctas, minCTAs);
SAME_FIELD(max_ctas, maxCTAs);
SAME_FIELD(net_name, netName);
static_assert(sizeof(ours::Config) == offsetof(ncclConfig_t, netName) + sizeof(const char*) &&
              sizeof(ours::Config) <= sizeof(ncclConfig_t));
static_assert(ours::kOldest == NCCL_VERSION(2, 17, 0) &&
              ours::kManyRanksOnAGpu == NCCL_VERSION(2, 30, 0));

int failures = 0;
void expect(bool ok, const char* what) {
  if (ok) return;
  std::printf("FAIL: NCCL: %s\n", what);
  ++failures;
}

}  // namespace

int main() {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const ours::Config mine;
  expect(mine.magic == theirs.magic && mine.blocking == theirs.blocking &&
             mine.max_ctas == theirs.maxCTAs && mine.net_name == theirs.netName,
         "expected the values of NCCL_CONFIG_INITIALIZER");
  ours::Functions f;
  try {
    f = ours::open_library(ours::library_names());
  } catch (const std::exception& e) {
    if (failures) return 1;
    std::printf("SKIP(%s)\n", e.what());
    return 77;
  }
  int version = 0;
  expect(f.get_version(&version) == ours::kSuccess && version >= ours::kOldest,
         "expected a version of 2.17 or newer");
  ours::UniqueId a{}, b{};
  expect(f.get_unique_id(&a) == ours::kSuccess && f.get_unique_id(&b) == ours::kSuccess,
         "expected ncclGetUniqueId to succeed");
  const auto empty = [](const ours::UniqueId& id) {
    return std::all_of(std::begin(id.internal), std::end(id.internal),
                       [](char c) { return c == 0; });
  };
  expect(!empty(a) &&
             !std::equal(std::begin(a.internal), std::end(a.internal), std::begin(b.internal)),
         "expected two different ids");
  std::printf(
      "NCCL: header %s, library %s opened, all functions found; ncclGetVersion and ncclGetUniqueId "
      "succeed\n",
      ours::version_text(NCCL_VERSION_CODE).c_str(), ours::version_text(version).c_str());
  return failures != 0;
}
