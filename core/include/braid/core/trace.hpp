#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <braid/core/device.hpp>

// What the time of a step is spent on: spans, recorded by the library while a Recording lives.
// While none does, a span is one relaxed load.
namespace braid { class Event; }
namespace braid::trace {

/// What a span belongs to.
enum class Phase : std::uint8_t { step, scatter, replicate, compute, gather, reduce, optimizer };
inline constexpr std::size_t kPhases = 7;
/// `step`, `scatter`, ….
[[nodiscard]] const char* name_of(Phase phase) noexcept;

/// Whose time a span has: on a device with a queue (CUDA, emulated too) the device's own, by
/// events; on the CPU, where work is done when its call returns, the host's. `host` for a CUDA
/// device: it was not in the list of the Recording, so that the span is the time it took to queue
/// the work.
enum class Clock : std::uint8_t { host, device };

/// A span. Times in ns since the recording began.
struct Record {
  const char* name;  ///< a literal
  std::int64_t begin, end;
  /// Recording::begin_step counts them, from 0 on; -1 before the first
  std::int64_t step;
  std::uint64_t bytes;         ///< moved to or from the device
  std::uint64_t cached_bytes;  ///< not moved, because they were there
  /// that stay on the device when the span is over: copies for the next step, joined outputs
  std::uint64_t kept_bytes;
  /// bytes that the device's tensors have grown by, in spans that were asked to say so
  std::int64_t memory;
  std::int32_t replica;  ///< -1: none
  std::int32_t thread;   ///< in the order of their first spans, from 0 on
  Device device;
  Phase phase;
  Clock clock;
};

namespace detail {
inline constinit std::atomic<bool> on{false};

/// A span that has begun.
struct Open {
  Record record;
  Event* begin_event;  // null: the host's time counts
  std::uint64_t generation;
  bool measures_memory;
};
/// Makes an Open at that place.
void begin(Open& place, const char* name, Phase phase, Device device, std::int32_t replica,
           bool memory) noexcept;
/// `at`: when the host's part ended, in ns of now(); 0: now.
void end(Open& open, std::int64_t at = 0) noexcept;
}  // namespace detail

[[nodiscard]] inline bool enabled() noexcept { return detail::on.load(std::memory_order_relaxed); }
/// The host's clock, which never goes back, in ns.
[[nodiscard]] std::int64_t now() noexcept;

/// From its making to its end: `const trace::Span span("forward", trace::Phase::compute, device,
/// replica);`. `name` is a literal. Where spans of a device nest, the innermost counts. What cannot
/// be recorded (no memory, a lost device) is left out: a span never throws.
class Span {
 public:
  enum class Memory : bool { no, yes };
  Span(const char* name, Phase phase, Device device, std::int32_t replica = -1,
       Memory memory = Memory::no) noexcept
      : open_(enabled()) {
    if (open_) [[unlikely]]
      detail::begin(span_, name, phase, device, replica, memory == Memory::yes);
  }
  ~Span() {
    if (open_) [[unlikely]]
      detail::end(span_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  void add_bytes(std::uint64_t bytes) noexcept {
    if (open_) span_.record.bytes += bytes;
  }
  void add_kept_bytes(std::uint64_t bytes) noexcept {
    if (open_) span_.record.kept_bytes += bytes;
  }

 private:
  union {  // untouched while nothing is recorded
    detail::Open span_;
  };
  bool open_;
};

/// One span on each device of a group, for what all of them take part in. Replica i is on
/// devices[i].
class GroupSpan {
 public:
  GroupSpan(const char* name, Phase phase, std::span<const Device> devices) noexcept {
    if (enabled()) [[unlikely]]
      open(name, phase, devices);
  }
  ~GroupSpan() {
    if (!spans_.empty()) [[unlikely]]
      close();
  }
  GroupSpan(const GroupSpan&) = delete;
  GroupSpan& operator=(const GroupSpan&) = delete;
  void add_bytes(std::size_t replica, std::uint64_t bytes, std::uint64_t cached = 0,
                 std::uint64_t kept = 0) noexcept;

 private:
  void open(const char* name, Phase phase, std::span<const Device> devices) noexcept;
  void close() noexcept;
  std::vector<detail::Open> spans_;
};

/// The work of a thread that has to wait now and then: one span from each wait to the next.
class WorkSpan {
 public:
  WorkSpan(const char* name, Phase phase, Device device) noexcept
      : name_(name), phase_(phase), device_(device) {}
  ~WorkSpan() { pause(); }
  WorkSpan(const WorkSpan&) = delete;
  WorkSpan& operator=(const WorkSpan&) = delete;
  /// Work begins, or goes on.
  void resume() noexcept {
    if (!open_ && enabled()) [[unlikely]] {
      open_ = true;
      detail::begin(span_, name_, phase_, device_, -1, false);
      done_ = span_.record.begin;
    }
  }
  /// A piece of it is done; if a wait comes next, the span ends here.
  void mark() noexcept {
    if (open_) [[unlikely]]
      done_ = now();
  }
  void pause() noexcept {
    if (open_) [[unlikely]] {
      detail::end(span_, done_);
      open_ = false;
    }
  }
  [[nodiscard]] bool open() const noexcept { return open_; }

 private:
  union {
    detail::Open span_;
  };
  const char* name_;
  Phase phase_;
  Device device_;
  bool open_ = false;
  std::int64_t done_ = 0;
};

/// Spans are recorded while it lives, those of all threads; one at a time in a process. A thread
/// appends to a buffer of its own, without a lock; a buffer holds 262,144 spans.
class Recording {
 public:
  /// `devices`: those whose own clocks are used. Waits for what they have queued, once. Throws
  /// Error if another recording is on, DeviceError for a device that does not exist.
  explicit Recording(std::span<const Device> devices);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Later spans belong to the next step; gives its number.
  std::int64_t begin_step() noexcept;
  /// Nothing is recorded from now on. Spans that have not ended by then are left out.
  void stop() noexcept;
  /// Stops, waits for the devices, and gives all spans in the order of their beginning, the longer
  /// first. Throws what a lost device throws.
  [[nodiscard]] std::vector<Record> records();
  /// Spans that found no room.
  [[nodiscard]] std::uint64_t dropped() const noexcept;
  /// What a span costs the thread that makes it, in s: measured now on the host's clock, without a
  /// device's events. While nothing else is recorded.
  [[nodiscard]] static double seconds_per_span();

 private:
  struct Anchor;
  std::vector<Anchor> anchors_;  // of the devices that have a clock
  std::int64_t began_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace braid::trace
