#include "communicator/nccl/table.hpp"

#include <dlfcn.h>

#include <braid/core/error.hpp>

namespace braid::parallel::nccl {
namespace {

constexpr const char* kNames[] = {"libnccl.so.2", "libnccl.so"};

/// `find(name)` returns a function or null.
template <class Find> Functions functions_of(const char* library, const Find& find) {
  Functions f;
  const auto set = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(find(name));
    if (function == nullptr)
      throw DeviceError(str("NCCL: expected ", library, " to have ", name, ", got none"));
  };
  set(f.get_version, "ncclGetVersion");
  set(f.get_unique_id, "ncclGetUniqueId");
  set(f.get_last_error, "ncclGetLastError");
  set(f.comm_init_rank_config, "ncclCommInitRankConfig");
  set(f.comm_get_async_error, "ncclCommGetAsyncError");
  set(f.comm_finalize, "ncclCommFinalize");
  set(f.comm_destroy, "ncclCommDestroy");
  set(f.comm_abort, "ncclCommAbort");
  set(f.group_start, "ncclGroupStart");
  set(f.group_end, "ncclGroupEnd");
  set(f.broadcast, "ncclBroadcast");
  set(f.reduce, "ncclReduce");
  set(f.all_reduce, "ncclAllReduce");
  set(f.all_gather, "ncclAllGather");
  set(f.reduce_scatter, "ncclReduceScatter");
  return f;
}

}  // namespace

const char* name_of(Result result) noexcept {
  constexpr const char* kResults[] = {
      "ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
      "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
      "ncclRemoteError",   "ncclInProgress",         "ncclTimeout"};
  return result >= 0 && result < static_cast<int>(std::size(kResults))
             ? kResults[result]
             : "a result of no known name";
}

void require_version(const Functions& functions, const char* library) {
  int version = 0;
  if (const Result result = functions.get_version(&version); result != kSuccess)
    throw DeviceError(str("NCCL: expected ", library, " to tell its version, got ", name_of(result),
                          " (", result, ")"));
  if (version < kOldest)
    throw DeviceError(str("NCCL: expected ", library, " to be ", version_text(kOldest),
                          " or newer, got ", version_text(version)));
}

std::string version_text(int version) {
  return str(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

std::span<const char* const> library_names() noexcept { return kNames; }

Functions open_library(std::span<const char* const> names) {
  std::string tried, why;
  for (const char* const name : names) {
    void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      const Functions functions = functions_of(
          name, [library](const char* function) { return ::dlsym(library, function); });
      require_version(functions, name);
      return functions;
    }
    if (const char* const error = ::dlerror(); error != nullptr && why.empty()) why = error;
    tried += tried.empty() ? name : str(", ", name);
  }
  throw DeviceError(str("NCCL: expected one of ", tried, ", got none: ", why));
}

Functions stand_in(const NativeDevice& device) {
  return functions_of("the emulation",
                      [&device](const char* function) { return device.stand_in(function); });
}

bool has_stand_in(const NativeDevice& device) noexcept {
  return device.stand_in("ncclGetVersion") != nullptr;
}

const Functions& functions_for(const NativeDevice& device) {
  if (has_stand_in(device)) {
    static const Functions functions = stand_in(device);
    return functions;
  }
  static const Functions functions = open_library(library_names());
  return functions;
}

}  // namespace braid::parallel::nccl
