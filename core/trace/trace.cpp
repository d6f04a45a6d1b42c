#include <braid/core/trace.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/device_clock.hpp>
#include <braid/core/internal/step_capture.hpp>

#include "trace/buffers.hpp"

namespace braid {

DeviceClock* device_clock(Device device) {
  return dynamic_cast<DeviceClock*>(device_context(device).backend);
}

}  // namespace braid

namespace braid::trace {
namespace {

std::atomic<std::uint64_t> generation{0};  // counts recordings
std::atomic<bool> busy{false};             // a Recording exists
std::atomic<std::int64_t> current_step{-1};
std::atomic<std::uint64_t> lost{0};     // spans for which there was no room
std::atomic<std::uint64_t> clocked[2];  // per device type; bit i: the clock of device i is used

constexpr std::uint64_t bit(Device device) noexcept {
  return std::uint64_t{1} << (static_cast<unsigned>(device.index()) % 64u);
}
std::atomic<std::uint64_t>& clocked_of(Device device) noexcept {
  return clocked[static_cast<std::size_t>(device.type())];
}

/// Records an event on the device's current stream, after all work queued so far. Returns null if
/// that is not possible, as while the thread records a step.
Event* mark_now(Device device) noexcept {
  if (braid::detail::StepCapture::current() != nullptr) return nullptr;
  Event* const event = take_event(device);
  if (event == nullptr) return nullptr;
  try {
    current_stream(device).record(*event);
    return event;
  } catch (...) {
    give_event(device, event);
    return nullptr;
  }
}

std::int64_t in_use(Device device) noexcept {
  try {
    return static_cast<std::int64_t>(memory_stats(device).in_use);
  } catch (...) {
    return 0;
  }
}

}  // namespace

std::int64_t now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace detail {

void begin(Open& place, const char* name, Phase phase, Device device, std::int32_t rank,
           bool memory) noexcept {
  const std::uint64_t number = generation.load(std::memory_order_acquire);
  const Record record{.name = name,
                      .begin = 0,
                      .end = 0,
                      .step = current_step.load(std::memory_order_relaxed),
                      .bytes = 0,
                      .cached_bytes = 0,
                      .kept_bytes = 0,
                      .memory = memory ? in_use(device) : 0,
                      .rank = rank,
                      .thread = 0,
                      .device = device,
                      .phase = phase,
                      .clock = Clock::host};
  Event* const event =
      clocked_of(device).load(std::memory_order_relaxed) & bit(device) ? mark_now(device) : nullptr;
  Open* const open = ::new (static_cast<void*>(&place)) Open{record, event, number, memory};
  open->record.begin = now();  // last, so that the time of begin() itself is not counted
}

void end(Open& open, std::int64_t at) noexcept {
  Entry entry{open.record, open.begin_event, nullptr};
  entry.record.end = at != 0 ? at : now();
  if (entry.begin_event != nullptr) entry.end_event = mark_now(entry.record.device);
  if (open.measures_memory) entry.record.memory = in_use(entry.record.device) - entry.record.memory;
  if (enabled() && open.generation == generation.load(std::memory_order_acquire)) {
    if (append(entry, open.generation)) return;
    lost.fetch_add(1, std::memory_order_relaxed);
  }
  if (entry.begin_event != nullptr) give_event(entry.record.device, entry.begin_event);
  if (entry.end_event != nullptr) give_event(entry.record.device, entry.end_event);
}

}  // namespace detail

void GroupSpan::open(const char* name, Phase phase, std::span<const Device> devices) noexcept {
  try {
    spans_.resize(devices.size());
  } catch (...) {  // no memory: no span
    return;
  }
  for (std::size_t i = 0; i < devices.size(); ++i)
    detail::begin(spans_[i], name, phase, devices[i], static_cast<std::int32_t>(i), false);
}

void GroupSpan::close() noexcept {
  for (detail::Open& span : spans_) detail::end(span);
}

void GroupSpan::add_bytes(std::size_t rank, std::uint64_t bytes, std::uint64_t cached,
                          std::uint64_t kept) noexcept {
  if (rank >= spans_.size()) return;
  Record& record = spans_[rank].record;
  record.bytes += bytes;
  record.cached_bytes += cached;
  record.kept_bytes += kept;
}

/// A point in time on both clocks, the device's and the host's.
struct Recording::Anchor {
  Device device;
  Event* event;
  std::int64_t at;  // ns of now()
};

Recording::Recording(std::span<const Device> devices) {
  // throws for a device that does not exist
  for (const Device d : devices) (void)device_context(d);
  if (busy.exchange(true))
    throw Error(
        "trace::Recording: expected no other recording in this process, got one that is on");
  try {
    empty_buffers();
    for (const Device d : devices) {
      if (device_clock(d) == nullptr || (clocked_of(d).load() & bit(d)) != 0) continue;
      synchronize(d);
      Event* const event = mark_now(d);
      if (event == nullptr) continue;
      anchors_.push_back({d, event, 0});
      event->synchronize();
      anchors_.back().at = now();  // the device was idle, so the event has fired just before
      clocked_of(d).fetch_or(bit(d));
    }
  } catch (...) {
    for (const Anchor& a : anchors_) give_event(a.device, a.event);
    for (auto& word : clocked) word.store(0);
    busy.store(false);
    throw;
  }
  lost.store(0);
  current_step.store(-1);
  generation.fetch_add(1, std::memory_order_release);
  began_ = now();
  detail::on.store(true, std::memory_order_release);
}

Recording::~Recording() {
  stop();
  for (const Anchor& a : anchors_) give_event(a.device, a.event);
  busy.store(false);
}

std::int64_t Recording::begin_step() noexcept {
  current_step.store(steps_, std::memory_order_relaxed);
  return steps_++;
}

void Recording::stop() noexcept {
  detail::on.store(false);
  for (auto& word : clocked) word.store(0);
}

std::uint64_t Recording::dropped() const noexcept { return lost.load(std::memory_order_relaxed); }

std::vector<Record> Recording::records() {
  stop();
  std::vector<Entry> entries;
  for_each_entry(generation.load(), [&](const Entry& entry, std::int32_t thread) {
    entries.push_back(entry);
    entries.back().record.thread = thread;
  });
  std::vector<Record> records;
  records.reserve(entries.size());
  for (const Entry& entry : entries) {
    Record r = entry.record;
    const auto anchor = std::find_if(anchors_.begin(), anchors_.end(),
                                     [&](const Anchor& a) { return a.device == r.device; });
    if (entry.begin_event != nullptr && entry.end_event != nullptr && anchor != anchors_.end()) {
      DeviceClock& clock = *device_clock(r.device);
      // The start is relative to the anchor, so that all spans of a device share one time line.
      // The length is measured directly, because seconds since the anchor are less precise.
      const double start = clock.seconds_between(*anchor->event, *entry.begin_event);
      const double length = clock.seconds_between(*entry.begin_event, *entry.end_event);
      r.begin = anchor->at + std::llround(start * 1e9);
      r.end = r.begin + std::llround(length * 1e9);
      r.clock = Clock::device;
    }
    r.begin -= began_;
    r.end -= began_;
    records.push_back(r);
  }
  std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  return records;
}

double Recording::seconds_per_span() {
  // short rounds, so that at least one of them is not disturbed by other processes
  constexpr int kSpans = 256, kRounds = 64;
  const Device host;
  double best = 0;
  const Recording recording{std::span<const Device>()};
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t start = now();
    for (int i = 0; i < kSpans; ++i) const Span span("calibration", Phase::compute, host);
    const double seconds = static_cast<double>(now() - start) * 1e-9 / kSpans;
    best = round == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

}  // namespace braid::trace
