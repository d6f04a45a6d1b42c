#include "communicator/nccl/table.hpp"

#include <dlfcn.h>

#include <braid/core/error.hpp>
#include <braid/core/internal/linked_library.hpp>

namespace braid::parallel::nccl {
namespace {

constexpr const char* kNames[] = {"libnccl.so.2", "libnccl.so"};
constexpr const char* kLinkedName = "nccl";

/// `find(name)` returns a function or null.
template <class Find> Functions functions_of(const char* library, const Find& find) {
  Functions f;
  const auto set = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(find(name));
    if (function == nullptr)
      throw DeviceError(str("NCCL: expected ", library, " to have ", name, ", got none"));
  };
#define BRAID_NCCL(member, name, Result, parameters) set(f.member, #name);
#include <braid/core/internal/nccl_functions.def>
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

bool is_linked() { return find_linked_library(kLinkedName) != nullptr; }

Functions linked_functions() {
  const FindFunction find = find_linked_library(kLinkedName);
  return functions_of("the emulation", [find](const char* function) -> LibraryFunction {
    return find == nullptr ? nullptr : find(function);
  });
}

const Functions& library_functions() {
  if (is_linked()) {
    static const Functions functions = linked_functions();
    return functions;
  }
  static const Functions functions = open_library(library_names());
  return functions;
}

int type_of(DType dtype) {
  switch (dtype) {
    case DType::bool_:
    case DType::uint8: return kUint8;
    case DType::int32: return kInt32;
    case DType::int64: return kInt64;
    case DType::float16: return kFloat16;
    case DType::bfloat16: return kBfloat16;
    case DType::float32: return kFloat32;
    case DType::float64: return kFloat64;
  }
  throw InternalError(str("NCCL: expected a type of tensors, got ", static_cast<int>(dtype)));
}

}  // namespace braid::parallel::nccl
