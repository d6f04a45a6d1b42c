#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>

#include <braid/core/error.hpp>

#include "simt/error.hpp"
#include "simt/runtime/findings.hpp"
#include "simt/runtime/state.hpp"

namespace braid::simt {
namespace detail {
namespace {

// Returns `braid::cuda::relu<float>` for `void braid::cuda::relu<float>(float*, long)`.
std::string function_name(const void* function) {
  Dl_info info{};
  if (!dladdr(const_cast<void*>(function), &info) || !info.dli_sname)
    return "a kernel without a name";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), std::free);
  if (status != 0 || !text) return info.dli_sname;
  std::string name = text.get();
  // The parameters are the last parentheses at depth 0. Templates have the return type before the
  // name.
  int depth = 0;
  std::size_t end = name.size();
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) {
      end = i;
      break;
    }
  }
  name.resize(end);
  depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == '>') ++depth;
    if (name[i] == '<') --depth;
    if (name[i] == ' ' && depth == 0) return name.substr(i + 1);
  }
  return name;
}

const std::string& kernel_name(Runtime& r, const Launch& launch) {
  const auto [entry, fresh] =
      r.reports.kernel_names.try_emplace(launch.kernel ? launch.kernel : launch.name);
  if (fresh) entry->second = launch.name ? std::string(launch.name) : function_name(launch.kernel);
  return entry->second;
}

}  // namespace

cudaError_t enqueue_launch(const Launch& launch, cudaStream_t handle,
                           std::unique_ptr<Closure> closure) {
  return runtime_call("cudaLaunchKernel", [&](Runtime& r) {
    {
      const Runtime::Lock lock(r.mutex);
      const auto stream = r.find_stream(handle, "a launch", launch.where);
      if (!stream) return cudaErrorInvalidResourceHandle;
      const std::string& name = kernel_name(r, launch);
      if (stream->device != current_device) {
        r.reports.add(
            ReportKind::wrong_device, stream->device, launch.where, stream->created,
            str("kernel ", name, " at ", describe(launch.where),
                ": the current device is cuda:", current_device, ", the stream (created at ",
                describe(stream->created), ") belongs to cuda:", stream->device));
        return cudaErrorInvalidResourceHandle;
      }
      if (const cudaError_t error = r.forbidden_work(*stream); error != cudaSuccess) return error;
      if (!valid_launch(launch)) return cudaErrorInvalidConfiguration;
      const std::shared_ptr<const Closure> body = std::move(closure);
      Launch named = launch;
      named.name = name.c_str();
      const OpPtr op =
          r.enqueue(*stream, OpKind::kernel, "launch", launch.where, [&r, named, body](Op& self) {
            {
              const Runtime::Lock runs(r.mutex);
              r.check_watches(self, *body);
            }
            try {
              set_current_op(self.id, self.device);
              run_grid(named, *body);
            } catch (const Error& e) {
              const Runtime::Lock runs(r.mutex);
              const ReportKind kind =
                  e.finding() == Finding::stream_race ? ReportKind::race
                  : e.finding() == Finding::use_after_free || e.finding() == Finding::wrong_device
                      ? kind_of(e.finding())
                      : ReportKind::kernel;
              r.reports.add_op(kind, self, {}, str(describe(self), ": ", e.what()),
                               code_of(e.finding()));
            }
          });
      op->kernel = &name;
      op->body = body;
      r.reports.log_launch({&name, stream->device, launch.grid, launch.block});
    }
    r.settle();
    return cudaSuccess;
  });
}

}  // namespace detail

std::vector<LaunchRecord> launch_log() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  std::vector<LaunchRecord> records;
  for (const auto& logged : r.reports.log)
    records.push_back({*logged.kernel, logged.device, logged.grid, logged.block});
  return records;
}

void clear_launch_log() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  r.reports.log.clear();
}

}  // namespace braid::simt
