// Records a run: the spans of its steps, and the memory of its devices.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <thread>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/device_clock.hpp>
#include <braid/core/storage.hpp>
#include <braid/parallel/report.hpp>

#include "process/collective_log.hpp"
#include "report/phases.hpp"

namespace braid::parallel {
namespace {

/// Returns the GPU of each device; -1 for CPU devices and emulated ones.
std::vector<int> processors(std::span<const Device> devices) {
  std::vector<int> list;
  for (const Device d : devices) {
    const DeviceClock* const clock = device_clock(d);
    list.push_back(clock == nullptr ? -1 : clock->real_gpu());
  }
  return list;
}

/// True if devices share a processor: CPU devices and emulated ones are on the host's, and CUDA
/// devices may share a GPU.
bool are_logical(std::span<const Device> devices) {
  const std::vector<int> on = processors(devices);
  const std::set<int> different(on.begin(), on.end());
  return different.count(-1) != 0 || different.size() < on.size();
}

/// Returns the slowdown expected from sharing. CPU devices have num_threads() cores each, up to the
/// number of cores. Emulated devices run one at a time. Devices on one GPU share it.
double expected_slowdown(std::span<const Device> devices) {
  std::map<int, double> on;
  for (const int processor : processors(devices)) ++on[processor];
  double most = 1;
  for (const auto& [processor, count] : on) {
    const bool cores = processor == -1 && devices.front().type() == DeviceType::cpu;
    const double at_once =
        cores
            ? static_cast<double>(std::max(1u, std::thread::hardware_concurrency())) / num_threads()
            : 1;
    most = std::max(most, count / std::max(at_once, 1.0));
  }
  return most;
}

/// Adds the bytes of a tensor's storage to its device, each storage once.
void add_storages(const Tensor& t, std::set<const Storage*>& seen,
                  std::vector<DeviceMemory>& memory, std::size_t DeviceMemory::* kind) {
  if (!t.defined() || !seen.insert(t.storage().get()).second) return;
  const auto at = std::find_if(memory.begin(), memory.end(),
                               [&](const DeviceMemory& m) { return m.device == t.device(); });
  if (at != memory.end()) (*at).*kind += t.storage()->bytes();
}

}  // namespace

DataParallelReport::Recording::Recording(DataParallelReport& report, std::vector<Device> devices,
                                         std::int64_t batch)
    : report_(report) {
  if (devices.empty())
    throw ArgumentError("DataParallelReport::record: expected at least one device, got none");
  if (batch < 1)
    throw ArgumentError(
        str("DataParallelReport::record: expected a batch of at least one row, got ", batch));
  check_devices("DataParallelReport::record", devices);
  run_.simulated = are_logical(devices);
  run_.slowdown = expected_slowdown(devices);
  run_.batch = batch;
  for (const Device d : devices) run_.memory.push_back({.device = d});
  run_.devices = std::move(devices);
  process::clear_collectives();
  recording_.emplace(run_.devices);
  mark_beginning();
  for (const Device d : run_.devices) reset_peak_memory(d);
}

DataParallelReport::Recording::~Recording() {
  try {
    finish();
  } catch (const std::exception& e) {
    warn(str("DataParallelReport: a recording was lost: ", e.what()));
  }
}

DataParallelReport::Recording::Step::Step(Recording& recording)
    : recording_(recording),
      span_((recording.recording_ ? recording.recording_->begin_step() : 0, "step"),
            trace::Phase::step, recording.run_.devices.front()) {}

DataParallelReport::Recording::Step::~Step() {
  for (const Device d : recording_.run_.devices) {
    try {
      synchronize(d);
    } catch (...) {  // the next use of the device throws it again
    }
  }
}

void DataParallelReport::Recording::set_seconds(double seconds) {
  if (!(seconds > 0) || !std::isfinite(seconds))
    throw ArgumentError(str("set_seconds: expected a positive number, got ", seconds));
  run_.seconds = seconds;
}

void DataParallelReport::Recording::count(const tree::Flat& model,
                                          std::span<const tree::Flat> optimizers,
                                          std::span<const std::vector<Tensor>> copies) {
  for (DeviceMemory& m : run_.memory) m.parameters = m.gradients = m.optimizer = 0;
  std::set<const Storage*> seen;
  for (const tree::Leaf& leaf : model.leaves)
    add_storages(*leaf.tensor, seen, run_.memory, &DeviceMemory::parameters);
  for (const tree::Leaf& leaf : model.leaves)
    if (leaf.kind == tree::Kind::parameter && leaf.tensor->defined())
      add_storages(leaf.tensor->grad(), seen, run_.memory, &DeviceMemory::gradients);
  for (const std::vector<Tensor>& copy : copies)
    for (const Tensor& p : copy)
      if (p.defined()) add_storages(p.grad(), seen, run_.memory, &DeviceMemory::gradients);
  for (const tree::Flat& optimizer : optimizers)
    for (const tree::Leaf& leaf : optimizer.leaves)
      add_storages(*leaf.tensor, seen, run_.memory, &DeviceMemory::optimizer);
  counted_ = true;
}

void DataParallelReport::Recording::finish() {
  if (!recording_) return;
  try {
    run_.spans = recording_->records();
  } catch (...) {
    recording_.reset();  // ended anyway: another recording may begin
    throw;
  }
  take_marks();
  run_.dropped = recording_->dropped();
  recording_.reset();
  for (DeviceMemory& m : run_.memory) {
    m.peak = memory_stats(m.device).peak;
    std::map<std::int64_t, std::size_t> activations, outputs;  // by step
    // By span name: the last span says what is kept.
    std::map<std::string_view, std::size_t> cached;
    for (const trace::Record& r : run_.spans) {
      if (r.device != m.device) continue;
      if (r.memory > 0) activations[r.step] += static_cast<std::size_t>(r.memory);
      if (r.phase == phase::gather) outputs[r.step] += r.kept_bytes;
      if (r.phase == phase::replicate && r.kept_bytes > 0) cached[r.name] = r.kept_bytes;
    }
    for (const auto& [step, bytes] : activations) m.activations = std::max(m.activations, bytes);
    for (const auto& [step, bytes] : outputs) m.outputs = std::max(m.outputs, bytes);
    for (const auto& [name, bytes] : cached) m.replica_cache += bytes;
  }
  if (!counted_) run_.memory.clear();
  find_phases(run_, trace::Recording::seconds_per_span());
  if (run_.seconds == 0) run_.seconds = run_.recorded_seconds;
  report_.runs_.push_back(std::move(run_));
}

}  // namespace braid::parallel
