#include "process/flight_record.hpp"

#include <chrono>
#include <cstdio>
#include <utility>

#include <braid/core/error.hpp>

namespace braid::parallel::process {
namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Writes values in Python's pickle format, protocol 2.
class Pickle {
 public:
  Pickle() : bytes_("\x80\x02") {}
  void text(std::string_view value) {
    bytes_ += 'X';
    little(value.size(), 4);
    bytes_ += value;
  }
  void number(std::int64_t value) {
    bytes_ += "\x8a\x08";
    little(static_cast<std::uint64_t>(value), 8);
  }
  void boolean(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  void none() { bytes_ += 'N'; }
  void begin_dict() { bytes_ += "}("; }
  void end_dict() { bytes_ += 'u'; }
  void begin_list() { bytes_ += "]("; }
  void end_list() { bytes_ += 'e'; }
  void pair() { bytes_ += '\x86'; }  ///< of the last two values
  [[nodiscard]] std::string end() { return bytes_ + '.'; }

  void entry(std::string_view key, std::string_view value) { text(key), text(value); }
  void entry(std::string_view key, std::int64_t value) { text(key), number(value); }
  void time(std::string_view key, std::int64_t value) {
    text(key);
    if (value == 0) none();
    else number(value);
  }
  void sizes(std::string_view key, const Shape& shape, bool any) {
    text(key);
    begin_list();
    if (any) {
      begin_list();
      for (const std::int64_t n : shape) number(n);
      end_list();
    }
    end_list();
  }
  void types(std::string_view key, const char* type, bool any) {
    text(key);
    begin_list();
    if (any) text(type);
    end_list();
  }

 private:
  void little(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  std::string bytes_;
};

/// PyTorch's names.
const char* type_name(DType dtype) {
  constexpr const char* kNames[] = {"Bool", "Byte",     "Int",   "Long",
                                    "Half", "BFloat16", "Float", "Double"};
  return kNames[static_cast<std::size_t>(dtype)];
}

}  // namespace

int FlightRecord::add_group(std::string name, std::vector<int> ranks, double timeout) {
  const std::lock_guard lock(mutex_);
  std::string desc = groups_.empty() ? "default_pg" : name;
  groups_.push_back({std::move(name), std::move(desc), std::move(ranks), timeout, 0});
  return static_cast<int>(groups_.size()) - 1;
}

std::uint64_t FlightRecord::add(int group, const std::string& engine, const Call& call) {
  if (call.kind == CallKind::function) return 0;
  const std::lock_guard lock(mutex_);
  Group& g = groups_[static_cast<std::size_t>(group)];
  Entry e{};
  e.number = ++next_;
  e.group = group;
  e.op = str(engine, ":", name_of(call.kind));
  e.message = !is_collective(call.kind);
  const int rank = call.rank;
  if (call.kind == CallKind::send) e.op += str(" ", rank, "->", call.peer);
  if (call.kind == CallKind::recv) e.op += str(" ", rank, "<-", call.peer);
  e.sequence = e.message ? ++g.messages : call.number;
  e.in = e.out = call.shape;
  const auto size = static_cast<std::int64_t>(g.ranks.size());
  if (call.kind == CallKind::all_gather) e.out = {call.count * size};
  if (call.kind == CallKind::reduce_scatter) e.out = {call.count / size};
  e.has_in = call.kind != CallKind::recv && call.kind != CallKind::barrier;
  e.has_out = call.kind != CallKind::send && call.kind != CallKind::barrier;
  e.dtype = call.dtype;
  e.created = now();
  entries_.push_back(std::move(e));
  if (entries_.size() > kMost) entries_.pop_front();
  return next_;
}

FlightRecord::Entry* FlightRecord::find(std::uint64_t number) noexcept {
  if (entries_.empty() || number < entries_.front().number) return nullptr;
  return &entries_[static_cast<std::size_t>(number - entries_.front().number)];
}

void FlightRecord::started(std::uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  if (Entry* const e = find(number)) e->started = now();
}

void FlightRecord::completed(std::uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  if (Entry* const e = find(number)) e->completed = now();
}

std::string FlightRecord::pickle() const {
  const std::lock_guard lock(mutex_);
  Pickle p;
  p.begin_dict();
  p.entry("version", "2.10");
  p.text("pg_config");
  p.begin_dict();
  for (const Group& g : groups_) {
    std::string ranks;
    for (const int r : g.ranks) ranks += str(ranks.empty() ? "" : ", ", r);
    p.text(g.name);
    p.begin_dict();
    p.entry("name", g.name);
    p.entry("desc", g.desc);
    p.entry("ranks", "[" + ranks + "]");
    p.end_dict();
  }
  p.end_dict();
  p.text("entries");
  p.begin_list();
  for (const Entry& e : entries_) {
    const Group& g = groups_[static_cast<std::size_t>(e.group)];
    p.begin_dict();
    p.entry("record_id", static_cast<std::int64_t>(e.number));
    p.entry("pg_id", e.group);
    p.text("process_group");
    p.text(g.name);
    p.text(g.desc);
    p.pair();
    p.entry("collective_seq_id", e.message ? 0 : static_cast<std::int64_t>(e.sequence));
    p.entry("p2p_seq_id", e.message ? static_cast<std::int64_t>(e.sequence) : 0);
    p.entry("op_id", static_cast<std::int64_t>(e.sequence));
    p.entry("profiling_name", e.op);
    p.entry("time_created_ns", e.created);
    p.sizes("input_sizes", e.in, e.has_in);
    p.types("input_dtypes", type_name(e.dtype), e.has_in);
    p.sizes("output_sizes", e.out, e.has_out);
    p.types("output_dtypes", type_name(e.dtype), e.has_out);
    p.entry("state", e.completed != 0 ? "completed" : e.started != 0 ? "started" : "scheduled");
    p.time("time_discovered_started_ns", e.started);
    p.time("time_discovered_completed_ns", e.completed);
    p.text("retired");
    p.boolean(e.completed != 0);
    p.entry("timeout_ms", static_cast<std::int64_t>(g.timeout * 1000));
    p.text("is_p2p");
    p.boolean(e.message);
    p.text("frames");
    p.begin_list();
    p.end_list();
    p.end_dict();
  }
  p.end_list();
  p.end_dict();
  return p.end();
}

void FlightRecord::write(const std::string& prefix, int rank) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(written_, true)) return;
    }
    const std::string bytes = pickle(), path = prefix + std::to_string(rank);
    if (std::FILE* const file = std::fopen(path.c_str(), "wb")) {
      (void)std::fwrite(bytes.data(), 1, bytes.size(), file);
      (void)std::fclose(file);
    }
  } catch (...) {  // as documented
  }
}

}  // namespace braid::parallel::process
