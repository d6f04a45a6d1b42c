// The bytes in which a rank's spans travel. Ranks are not trusted: every field is checked.
#include <algorithm>
#include <cstring>
#include <map>

#include <braid/core/error.hpp>

#include "process/collective_log.hpp"
#include "report/ranks.hpp"

namespace braid::parallel {
namespace {

constexpr std::uint64_t kMagic = 0x3145434152544442;  // with another byte order: refused
constexpr std::size_t kMostNames = 65536, kMostName = 256, kMostDevices = 1024;
constexpr int kMostIndex = 4096;

struct WireHead {
  std::uint64_t magic = kMagic, dropped = 0, spans = 0, collectives = 0;
  std::int64_t began = 0, began_uncertainty = 0;
  std::uint32_t devices = 0, listed = 0;  // those of the run come first
  std::uint32_t names = 0, zero = 0;
};
struct WireDevice {
  std::int32_t type = 0, index = 0;
};
struct WireSpan {
  std::int64_t begin = 0, end = 0, step = 0, memory = 0;
  std::uint64_t bytes = 0, cached_bytes = 0, kept_bytes = 0;
  std::int32_t rank = 0, thread = 0;
  std::uint32_t name = 0, phase = 0, device = 0, clock = 0;
};
struct WireCollective {
  std::uint64_t call = 0, bytes = 0;
  std::int64_t step = 0, begin = 0, end = 0, waited = 0;
  std::uint32_t name = 0, zero = 0;
};

/// Texts and devices by number, each once.
template <class T> class Table {
 public:
  std::uint32_t number(const T& value) {
    const auto [at, added] = numbers_.emplace(value, static_cast<std::uint32_t>(list.size()));
    if (added) list.push_back(value);
    return at->second;
  }
  std::vector<T> list;

 private:
  std::map<T, std::uint32_t> numbers_;
};

template <class T> void put(std::string& out, const T& value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

std::string short_name(std::string_view name) { return std::string(name.substr(0, kMostName)); }

class Reader {
 public:
  Reader(std::string_view bytes, int rank) : bytes_(bytes), rank_(rank) {}
  template <class T> T take(const char* what) {
    T value;
    need(sizeof(T), what);
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view text(std::size_t size) {
    need(size, "a name");
    const std::string_view text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return text;
  }
  void expect(bool right, const char* what) const {
    if (!right) refuse(what);
  }
  /// `count` entries of `each` bytes must be there before memory is taken for them.
  void need(std::uint64_t count, std::size_t each, const char* what) const {
    if (count > bytes_.size() / each) refuse(what);
  }
  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

 private:
  void need(std::size_t size, const char* what) const { need(size, 1, what); }
  [[noreturn]] void refuse(const char* what) const {
    throw CommError(str("DataParallelReport: rank ", rank_, ": its spans: expected ", what,
                        ", got something else"));
  }
  std::string_view bytes_;
  int rank_;
};

}  // namespace

std::string encode_rank(const RankPart& part, std::size_t most) {
  Table<std::string> names;
  Table<Device> devices;
  for (const Device d : part.devices) (void)devices.number(d);
  WireHead head{.dropped = part.dropped,
                .began = part.began,
                .began_uncertainty = part.began_uncertainty,
                .listed = static_cast<std::uint32_t>(devices.list.size())};
  std::size_t size = sizeof head + devices.list.size() * sizeof(WireDevice);
  // Returns whether an entry with these names fits; one more device is always counted.
  const auto fits = [&](std::size_t entry) {
    const std::size_t more = entry + 2 * (kMostName + 4) + sizeof(WireDevice);
    if (size + more > most || names.list.size() + 2 > kMostNames) return false;
    size += entry;
    return true;
  };
  const auto number = [&](std::string_view name) {
    const std::size_t before = names.list.size();
    const std::uint32_t n = names.number(short_name(name));
    if (names.list.size() > before) size += names.list.back().size() + 4;
    return n;
  };
  std::string collectives, spans;
  for (const CollectiveSpan& c : part.collectives) {
    if (head.collectives == process::kMostCollectives || !fits(sizeof(WireCollective))) {
      ++head.dropped;
      continue;
    }
    put(collectives,
        WireCollective{c.call, c.bytes, c.step, c.begin, c.end, c.waited, number(c.name), 0});
    ++head.collectives;
  }
  for (const trace::Record& r : part.spans) {
    if (!fits(sizeof(WireSpan))) {
      ++head.dropped;
      continue;
    }
    const std::size_t before = devices.list.size();
    const std::uint32_t device = devices.number(r.device);
    size += (devices.list.size() - before) * sizeof(WireDevice);
    put(spans, WireSpan{r.begin, r.end, r.step, r.memory, r.bytes, r.cached_bytes, r.kept_bytes,
                        r.rank, r.thread, number(r.name), number(r.phase.name()), device,
                        r.clock == trace::Clock::device ? 1u : 0u});
    ++head.spans;
  }
  head.devices = static_cast<std::uint32_t>(devices.list.size());
  head.names = static_cast<std::uint32_t>(names.list.size());
  std::string out;
  put(out, head);
  for (const Device d : devices.list)
    put(out, WireDevice{static_cast<std::int32_t>(d.type()), d.index()});
  for (const std::string& name : names.list) {
    put(out, static_cast<std::uint32_t>(name.size()));
    out += name;
  }
  return out + collectives + spans;
}

RankRun decode_rank(std::string_view bytes, int rank, ClockOffset clock, std::int64_t began) {
  Reader in(bytes, rank);
  const auto head = in.take<WireHead>("a head");
  in.expect(head.magic == kMagic && head.zero == 0, "the head of this version and byte order");
  in.expect(is_time(head.began) && is_time(began) && is_time(clock.offset) &&
                head.began_uncertainty >= 0 && is_time(head.began_uncertainty),
            "the time of a monotonic clock");
  in.expect(head.devices <= kMostDevices && head.listed <= head.devices, "fewer devices");
  in.need(head.devices, sizeof(WireDevice), "all devices");
  std::vector<Device> devices;
  for (std::uint32_t i = 0; i < head.devices; ++i) {
    const auto d = in.take<WireDevice>("a device");
    in.expect((d.type == static_cast<std::int32_t>(DeviceType::cpu) ||
               d.type == static_cast<std::int32_t>(DeviceType::cuda)) &&
                  d.index >= 0 && d.index < kMostIndex,
              "a device");
    devices.emplace_back(static_cast<DeviceType>(d.type), d.index);
  }
  in.expect(head.names <= kMostNames, "fewer names");
  in.need(head.names, sizeof(std::uint32_t), "all names");
  const auto names = std::make_shared<std::vector<std::string>>();
  for (std::uint32_t i = 0; i < head.names; ++i) {
    const auto size = in.take<std::uint32_t>("the size of a name");
    in.expect(size <= kMostName, "a shorter name");
    names->emplace_back(in.text(size));
    in.expect(names->back().find('\0') == std::string::npos, "a name without zeros");
  }
  RankRun run{.rank = rank,
              .clock_offset = clock.offset,
              .clock_uncertainty = clock.uncertainty + (rank == 0 ? 0 : head.began_uncertainty),
              .devices = {devices.begin(), devices.begin() + head.listed},
              .dropped = head.dropped,
              .names = names};
  const std::int64_t to_run = -clock.offset - began, shift = head.began + to_run;
  in.expect(head.collectives <= process::kMostCollectives, "fewer collectives");
  in.need(head.collectives, sizeof(WireCollective), "all collectives");
  run.collectives.reserve(head.collectives);
  for (std::uint64_t i = 0; i < head.collectives; ++i) {
    const auto c = in.take<WireCollective>("a collective");
    in.expect(c.name < names->size() && c.zero == 0, "the name of a collective");
    in.expect(is_time(c.begin) && is_time(c.end) && c.begin <= c.end && c.waited >= 0 &&
                  c.waited <= c.end - c.begin && c.step >= -1,
              "the times of a collective");
    run.collectives.push_back(
        {(*names)[c.name], c.call, c.bytes, c.step, c.begin + to_run, c.end + to_run, c.waited});
  }
  in.need(head.spans, sizeof(WireSpan), "all spans");
  run.spans.reserve(head.spans);
  for (std::uint64_t i = 0; i < head.spans; ++i) {
    const auto s = in.take<WireSpan>("a span");
    in.expect(s.name < names->size() && s.phase < names->size() && s.device < devices.size() &&
                  s.clock <= 1,
              "the name, phase, device and clock of a span");
    in.expect(is_time(s.begin) && is_time(s.end) && s.begin <= s.end && s.step >= -1,
              "the times of a span");
    run.spans.push_back({.name = (*names)[s.name].c_str(),
                         .begin = s.begin + shift,
                         .end = s.end + shift,
                         .step = s.step,
                         .bytes = s.bytes,
                         .cached_bytes = s.cached_bytes,
                         .kept_bytes = s.kept_bytes,
                         .memory = s.memory,
                         .rank = s.rank,
                         .thread = s.thread,
                         .device = devices[s.device],
                         .phase = trace::Phase((*names)[s.phase].c_str()),
                         .clock = s.clock == 1 ? trace::Clock::device : trace::Clock::host});
  }
  in.expect(in.empty(), "nothing after the spans");
  return run;
}

}  // namespace braid::parallel
