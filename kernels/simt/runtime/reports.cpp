#include <cstring>

#include <braid/core/error.hpp>

#include "simt/runtime/state.hpp"

namespace braid::simt {
namespace detail {

std::string base_name(const char* path) {
  if (!path) return {};
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

std::string describe(Location where) {
  return where.file ? str(base_name(where.file), ":", where.line) : std::string("an unknown place");
}

std::string describe(const Op& op) {
  std::string text = op.kernel ? "kernel " + *op.kernel : std::string(op.call);
  if (op.on_stream)
    text += op.stream ? str(" on stream ", op.stream - kFirstHandle + 1)
                      : std::string(" on the default stream");
  return str(text, op.on_stream ? " of " : " on ", "cuda:", op.device, " (", describe(op.where),
             ")");
}

void Reports::add(ReportKind kind, int device, Location where, Location other,
                  const std::string& text) {
  ++count;
  last_text = str("simt: ", to_string(kind), ": ", text);
  found.push_back({kind, last_text, base_name(where.file), where.line, base_name(other.file),
                   other.line, device});
}

void report_host_access(int device, bool write, const std::string& file, int line) {
  Runtime& r = runtime();
  const Runtime::Lock lock(r.mutex);
  const std::string place = line > 0 ? str(file, ":", line) : std::string("an unknown place");
  r.reports.add(ReportKind::host_access, device, {}, {},
                str("the host ", write ? "writes" : "reads", " memory of cuda:", device, " at ",
                    place, "; a GPU's memory is reached by kernels and copies alone"));
  r.reports.found.back().file = file;
  r.reports.found.back().line = line;
  if (r.reports.mode == ReportMode::sticky)
    r.reports.poison(device, cudaErrorIllegalAddress, r.reports.last_text);
}

void Reports::add_op(ReportKind kind, const Op& op, Location other, const std::string& text,
                     cudaError_t code) {
  add(kind, op.device, op.where, other, text);
  if (mode != ReportMode::sticky) return;
  if (code == cudaSuccess) {
    const bool address = kind == ReportKind::use_after_free ||
                         kind == ReportKind::use_before_alloc ||
                         kind == ReportKind::out_of_bounds || kind == ReportKind::wrong_device ||
                         kind == ReportKind::double_free;
    code = address ? cudaErrorIllegalAddress : cudaErrorLaunchFailure;
  }
  poison(op.device, code, last_text);
}

void Reports::poison(int device, cudaError_t code, const std::string& reason) {
  if (devices.empty()) return;
  DeviceLoss& loss = devices[static_cast<std::size_t>(device)];
  if (loss.sticky == cudaSuccess) loss = {code, reason};
}

void Reports::log_launch(const LoggedLaunch& launch) {
  constexpr std::size_t kLogged = 65536;
  log.push_back(launch);
  if (log.size() > kLogged) log.pop_front();
}

void Reports::prune() {
  constexpr std::size_t kMostPairs = 4096;
  if (reported.size() > kMostPairs) reported.clear();
}

void Reports::clear() {
  found.clear(), reported.clear(), log.clear(), last_text.clear();
  for (DeviceLoss& loss : devices) loss = {};
}

}  // namespace detail

const char* to_string(ReportKind kind) noexcept {
  switch (kind) {
    case ReportKind::race: return "race";
    case ReportKind::use_after_free: return "use after free";
    case ReportKind::use_before_alloc: return "use before allocation";
    case ReportKind::double_free: return "double free";
    case ReportKind::bad_free: return "bad free";
    case ReportKind::out_of_bounds: return "out of bounds";
    case ReportKind::overlap: return "overlapping copy";
    case ReportKind::wrong_kind: return "wrong kind of memory";
    case ReportKind::wrong_device: return "wrong device";
    case ReportKind::pinned_reuse: return "pinned memory changed too early";
    case ReportKind::pinned_free: return "pinned memory freed too early";
    case ReportKind::early_read: return "read too early";
    case ReportKind::destroyed_handle: return "destroyed handle";
    case ReportKind::host_access: return "device memory on the host";
    case ReportKind::kernel: return "kernel";
  }
  return "unknown";
}

void set_report_mode(ReportMode mode) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  r.reports.mode = mode;
}

std::vector<Report> reports() {
  detail::Runtime& r = detail::runtime();
  r.run_all();
  const detail::Runtime::Lock lock(r.mutex);
  return r.reports.found;
}

std::vector<Report> take_reports() {
  detail::Runtime& r = detail::runtime();
  r.run_all();
  const detail::Runtime::Lock lock(r.mutex);
  return std::exchange(r.reports.found, {});
}

std::string last_report() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.reports.last_text;
}

std::string report_of_call() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.reports.count > detail::reports_before ? r.reports.last_text : std::string();
}

std::string report_of_loss(int device) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return device >= 0 && static_cast<std::size_t>(device) < r.device_count()
             ? r.reports.devices[static_cast<std::size_t>(device)].reason
             : std::string();
}

bool host_read(const void* p, std::size_t bytes, Location where) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  const char* begin = static_cast<const char*>(p);
  for (const detail::Watch& watch : r.memory.watches) {
    if (!watch.written || begin >= watch.begin + watch.bytes || watch.begin >= begin + bytes)
      continue;
    r.reports.add(ReportKind::early_read, watch.op->device, where, watch.op->where,
                  str("the host reads at ", detail::describe(where), " what ",
                      detail::describe(*watch.op), " writes, before it has waited for that"));
    if (r.reports.mode == ReportMode::sticky)
      r.reports.poison(watch.op->device, cudaErrorLaunchFailure, r.reports.last_text);
    return false;
  }
  return true;
}

}  // namespace braid::simt
