#pragma once
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <braid/core/device.hpp>

// Tracing: what the time of a training step is spent on. The library records spans while a
// Recording exists; otherwise a span costs one relaxed atomic load.
namespace braid { class Event; }
namespace braid::trace {

namespace detail {
// Names that are gone. A use is a compile error that names the new one.
struct RemovedPhase {
  template <class T> constexpr operator T() const {
    static_assert(!sizeof(T*),
                  "braid: trace::Phase::scatter, replicate, gather, reduce and optimizer are now "
                  "trace::Phase(\"scatter\") and so on");
    return T();
  }
};
struct RemovedPhases {
  template <class T> constexpr operator T() const {
    static_assert(!sizeof(T*), "braid: trace::kPhases is gone: a trace::Phase is now a name");
    return T();
  }
};
struct RemovedReplica {
  template <class T> constexpr operator T() const {
    static_assert(!sizeof(T*), "braid: trace::Record::replica is now rank");
    return T();
  }
};
}  // namespace detail

/// The part of a step that a span belongs to, by name. Core has `step` and `compute`; other modules
/// make theirs: `constexpr trace::Phase kGather("gather");`.
class Phase {
 public:
  constexpr Phase() noexcept = default;
  /// `name` must be a string literal.
  constexpr explicit Phase(const char* name) noexcept : name_(name) {}
  [[nodiscard]] constexpr const char* name() const noexcept { return name_; }
  friend constexpr bool operator==(Phase a, Phase b) noexcept {
    return std::string_view(a.name_) == b.name_;
  }
  static const Phase step, compute;
  /// These do not compile: the names are those of the modules.
  static constexpr detail::RemovedPhase scatter{}, replicate{}, gather{}, reduce{}, optimizer{};

 private:
  const char* name_ = "other";
};
inline constexpr Phase Phase::step{"step"};
inline constexpr Phase Phase::compute{"compute"};
/// These do not compile: a phase is a name, phase.name().
inline constexpr detail::RemovedPhases kPhases{};
template <std::same_as<Phase> P> const char* name_of(P) {
  static_assert(!sizeof(P*), "braid: trace::name_of(phase) is now phase.name()");
  return nullptr;
}

/// The clock that a span was measured with. `device`: events on a device with a queue (CUDA,
/// emulated too). `host`: the host's clock, for the CPU, where work is done when its call returns.
/// A span of a CUDA device that the Recording does not list has Clock::host: it measures the time
/// to queue the work.
enum class Clock : std::uint8_t { host, device };

/// One recorded span. Times are in ns since the recording began.
struct Record {
  const char* name;  ///< a string literal
  std::int64_t begin, end;
  /// index of the step, counted from 0 by Recording::begin_step; -1 before the first one
  std::int64_t step;
  std::uint64_t bytes;         ///< copied to or from the device
  std::uint64_t cached_bytes;  ///< not copied, because they were already there
  /// bytes that stay on the device after the span: copies for the next step, gathered outputs
  std::uint64_t kept_bytes;
  /// growth of the device's in_use memory in bytes, for spans with Memory::yes; else 0
  std::int64_t memory;
  std::int32_t rank;    ///< index in the group that works together; -1: none
  std::int32_t thread;  ///< from 0 on, in the order of the threads' first spans
  Device device;
  Phase phase;
  Clock clock;
  static constexpr detail::RemovedReplica replica{};  ///< does not compile: the name is rank
};

namespace detail {
inline constinit std::atomic<bool> on{false};

/// A span that has begun and not yet ended.
struct Open {
  Record record;
  Event* begin_event;  // null: the host's clock is used
  std::uint64_t generation;
  bool measures_memory;
};
/// Constructs an Open at `place`.
void begin(Open& place, const char* name, Phase phase, Device device, std::int32_t rank,
           bool memory) noexcept;
/// `at`: the end on the host's clock, in ns of now(); 0 means now.
void end(Open& open, std::int64_t at = 0) noexcept;
}  // namespace detail

/// Returns whether a Recording exists.
[[nodiscard]] inline bool enabled() noexcept { return detail::on.load(std::memory_order_relaxed); }
/// The host's monotonic clock, in ns.
[[nodiscard]] std::int64_t now() noexcept;

/// Measures from its construction to its destruction:
/// `const trace::Span span("forward", trace::Phase::compute, device, rank);`.
/// `name` must be a string literal. Where spans of a device are nested, reports attribute the time
/// to the innermost one. Never throws: a span that cannot be recorded (no memory, a lost device) is
/// left out.
class Span {
 public:
  enum class Memory : bool { no, yes };
  Span(const char* name, Phase phase, Device device, std::int32_t rank = -1,
       Memory memory = Memory::no) noexcept
      : open_(enabled()) {
    if (open_) [[unlikely]]
      detail::begin(span_, name, phase, device, rank, memory == Memory::yes);
  }
  ~Span() {
    if (open_) [[unlikely]]
      detail::end(span_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  /// Adds to Record::bytes, and to Record::kept_bytes.
  void add_bytes(std::uint64_t bytes) noexcept {
    if (open_) span_.record.bytes += bytes;
  }
  void add_kept_bytes(std::uint64_t bytes) noexcept {
    if (open_) span_.record.kept_bytes += bytes;
  }

 private:
  union {  // not initialised while nothing is recorded
    detail::Open span_;
  };
  bool open_;
};

/// One span on each device of a group, for an operation that all of them take part in. Rank i is on
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
  /// The same for the span of one rank.
  void add_bytes(std::size_t rank, std::uint64_t bytes, std::uint64_t cached = 0,
                 std::uint64_t kept = 0) noexcept;

 private:
  void open(const char* name, Phase phase, std::span<const Device> devices) noexcept;
  void close() noexcept;
  std::vector<detail::Open> spans_;
};

/// The work of a thread that sometimes waits: one span from the end of each wait to the beginning
/// of the next.
class WorkSpan {
 public:
  WorkSpan(const char* name, Phase phase, Device device) noexcept
      : name_(name), phase_(phase), device_(device) {}
  ~WorkSpan() { pause(); }
  WorkSpan(const WorkSpan&) = delete;
  WorkSpan& operator=(const WorkSpan&) = delete;
  /// Begins a span unless one is open.
  void resume() noexcept {
    if (!open_ && enabled()) [[unlikely]] {
      open_ = true;
      detail::begin(span_, name_, phase_, device_, -1, false);
      done_ = span_.record.begin;
    }
  }
  /// A piece of work is done. If the thread waits next, the span ends here.
  void mark() noexcept {
    if (open_) [[unlikely]]
      done_ = now();
  }
  /// Ends the span at the last mark().
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

/// Records the spans of all threads while it exists; only one can exist in a process. Each thread
/// appends to a separate buffer without a lock; a buffer holds 262,144 spans.
///
///     trace::Recording recording(devices());
///     recording.begin_step();
///     {
///       const trace::Span span("forward", trace::Phase::compute, device);
///       y = model(x);
///     }
///     for (const auto& span : recording.records()) print(span.name, ' ', span.end - span.begin);
class Recording {
 public:
  /// `devices` lists the devices whose own clocks are used. Waits once for the work that they have
  /// queued. Throws Error if another recording exists, DeviceError for a device that does not
  /// exist.
  explicit Recording(std::span<const Device> devices);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Begins the next step, to which later spans belong. Returns its index, from 0 on.
  std::int64_t begin_step() noexcept;
  /// Ends the recording. Spans that have not ended by then are left out.
  void stop() noexcept;
  /// Stops, waits for the devices, and returns all spans sorted by their begin; of equal ones the
  /// longest first. Throws CudaError or DeviceLostError if a device fails.
  [[nodiscard]] std::vector<Record> records();
  /// Number of spans that were lost because a buffer was full or memory ran out.
  [[nodiscard]] std::uint64_t dropped() const noexcept;
  /// Measures what a span costs the thread that makes it, in seconds, on the host's clock and
  /// without device events. Throws Error if a recording exists.
  [[nodiscard]] static double seconds_per_span();

 private:
  struct Anchor;
  std::vector<Anchor> anchors_;  // for the devices that have a clock
  std::int64_t began_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace braid::trace
