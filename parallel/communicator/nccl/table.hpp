#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

struct ncclComm;     // the library's own name
struct CUstream_st;  // CUDA's name

// Braid's own declarations of the part of NCCL that it calls. Building needs no NCCL header; the
// library is opened at run time. `./dev check cuda` compares the declarations with nccl.h.
// Enumerations are passed as int, as in C.
namespace braid::parallel::nccl {

using Comm = ncclComm*;
using Stream = CUstream_st*;
using Result = int;

// ncclResult_t
inline constexpr Result kSuccess = 0, kUnhandledCudaError = 1, kInvalidUsage = 5, kRemoteError = 6,
                        kInProgress = 7;
// ncclDataType_t
inline constexpr int kUint8 = 1, kInt32 = 2, kInt64 = 4, kFloat16 = 6, kFloat32 = 7, kFloat64 = 8,
                     kBfloat16 = 9;
// ncclRedOp_t
inline constexpr int kSum = 0, kProduct = 1, kMax = 2, kMin = 3;
// versions: the oldest supported one; the first with several ranks on one GPU
inline constexpr int kOldest = 21700, kManyRanksOnAGpu = 23000;

/// ncclUniqueId, passed by value.
struct UniqueId {
  char internal[128];
};

/// The first fields of ncclConfig_t, common to all versions from 2.17 on. By `size` and `version` a
/// library recognizes a shorter struct as an older one.
struct Config {
  static constexpr int kUndefined = INT32_MIN;
  std::size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = kOldest;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
};

/// The library's functions.
struct Functions {
#define BRAID_NCCL(member, name, Result, parameters) Result(*member) parameters = nullptr;
#include <braid/core/internal/nccl_functions.def>
};

/// Returns `ncclInvalidUsage`, …, or `a result of no known name`.
[[nodiscard]] const char* name_of(Result result) noexcept;
/// Returns `2.28.9` for 22809.
[[nodiscard]] std::string version_text(int version);

/// Returns `libnccl.so.2`, then the name without a version.
[[nodiscard]] std::span<const char* const> library_names() noexcept;
/// Throws DeviceError if the library is older than kOldest, or does not tell its version: `NCCL:
/// expected libnccl.so.2 to be 2.17.0 or newer, got 2.12.0`.
void require_version(const Functions& functions, const char* library);
/// Opens the first library of the list that exists, and finds its functions. Never closes it.
/// Throws DeviceError: `NCCL: expected one of …, got none: <why>`, the name of a function that the
/// library lacks, or as require_version.
[[nodiscard]] Functions open_library(std::span<const char* const> names);
/// True if a fake NCCL is linked into the program, which emulated devices use. Known from the first
/// use of a CUDA device on, as for the functions below.
[[nodiscard]] bool is_linked();
/// Returns the functions of the fake NCCL. Throws DeviceError for a function that it lacks.
[[nodiscard]] Functions linked_functions();

/// Returns the functions for a group of devices: the fake if there is one, else the library, which
/// is opened once. Throws DeviceError; the next call retries.
[[nodiscard]] const Functions& library_functions();

}  // namespace braid::parallel::nccl
