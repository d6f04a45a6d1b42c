#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <braid/core/native_device.hpp>

struct ncclComm;     // the library's own name
struct CUstream_st;  // CUDA's

// The part of NCCL that we call, in our own declarations: no header of it is needed to build, and
// the library is looked for at run time. `./dev check cuda` compares them with nccl.h. Enumerations
// are passed as int, as C does.
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
inline constexpr int kSum = 0;
// versions: what we need; several ranks on one GPU
inline constexpr int kOldest = 21700, kManyRanksOnAGpu = 23000;

/// ncclUniqueId, passed by value.
struct UniqueId {
  char internal[128];
};

/// The first fields of ncclConfig_t, as all versions from 2.17 on have them: a library takes a
/// shorter one for an older one, by `size` and `version`.
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

/// The functions by their names in the library.
struct Functions {
  /// ncclGetVersion
  Result (*get_version)(int*) = nullptr;
  /// ncclGetUniqueId
  Result (*get_unique_id)(UniqueId*) = nullptr;
  /// ncclGetLastError
  const char* (*get_last_error)(Comm) = nullptr;
  /// ncclCommInitRankConfig
  Result (*comm_init_rank_config)(Comm*, int, UniqueId, int, Config*) = nullptr;
  /// ncclCommGetAsyncError
  Result (*comm_get_async_error)(Comm, Result*) = nullptr;
  /// ncclCommFinalize
  Result (*comm_finalize)(Comm) = nullptr;
  /// ncclCommDestroy
  Result (*comm_destroy)(Comm) = nullptr;
  /// ncclCommAbort
  Result (*comm_abort)(Comm) = nullptr;
  /// ncclGroupStart
  Result (*group_start)() = nullptr;
  /// ncclGroupEnd
  Result (*group_end)() = nullptr;
  /// ncclBroadcast: …, type, root
  Result (*broadcast)(const void*, void*, std::size_t, int, int, Comm, Stream) = nullptr;
  /// ncclReduce: …, type, op, root
  Result (*reduce)(const void*, void*, std::size_t, int, int, int, Comm, Stream) = nullptr;
  /// ncclAllReduce: …, type, op
  Result (*all_reduce)(const void*, void*, std::size_t, int, int, Comm, Stream) = nullptr;
  /// ncclAllGather: …, count of a rank, type
  Result (*all_gather)(const void*, void*, std::size_t, int, Comm, Stream) = nullptr;
  /// ncclReduceScatter: …, count of a rank, type, op
  Result (*reduce_scatter)(const void*, void*, std::size_t, int, int, Comm, Stream) = nullptr;
};

/// `ncclInvalidUsage`, …; `a result of no known name`.
[[nodiscard]] const char* name_of(Result result) noexcept;
/// `2.28.9` of 22809.
[[nodiscard]] std::string version_text(int version);

/// `libnccl.so.2`, then the name without a version.
[[nodiscard]] std::span<const char* const> library_names() noexcept;
/// Throws DeviceError if the library is older than kOldest, or does not say:
/// `NCCL: expected libnccl.so.2 to be 2.17.0 or newer, got 2.12.0`.
void require_version(const Functions& functions, const char* library);
/// Opens the first library of the list that there is, for good, and finds the functions. Throws
/// DeviceError: `NCCL: expected one of …, got none: <why>`, the name of a function that the library
/// lacks, or as require_version.
[[nodiscard]] Functions open_library(std::span<const char* const> names);
/// What stands in for the library on emulated devices, by its functions' names. Throws DeviceError
/// for one that it lacks.
[[nodiscard]] Functions stand_in(const NativeDevice& device);
/// True if devices of this kind have a stand-in.
[[nodiscard]] bool has_stand_in(const NativeDevice& device) noexcept;

/// The functions for groups of such devices: the stand-in, else the library, which is opened once.
/// Throws DeviceError; a failure is tried again.
[[nodiscard]] const Functions& functions_for(const NativeDevice& device);

}  // namespace braid::parallel::nccl
