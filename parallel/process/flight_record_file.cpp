#include <braid/parallel/internal/flight_record.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include <braid/core/error.hpp>
#include <braid/core/internal/io/file.hpp>

#include "process/pickle_text.hpp"

namespace braid::parallel::detail {
namespace {

// The version of the form: that of PyTorch 2.7 and later.
constexpr const char* kVersion = "2.10";

/// The name of the type as PyTorch writes it.
const char* type_name(DType dtype) {
  switch (dtype) {
    case DType::bool_: return "Bool";
    case DType::uint8: return "Byte";
    case DType::int32: return "Int";
    case DType::int64: return "Long";
    case DType::float16: return "Half";
    case DType::bfloat16: return "BFloat16";
    case DType::float32: return "Float";
    case DType::float64: return "Double";
  }
  return "Undefined";
}

/// The analyzer knows PyTorch's own libraries; it reads "c10d" where the library is another one.
/// The text of the group has the true name.
const char* library_name(const std::string& engine) {
  return engine == "nccl" ? "nccl" : engine == "gloo" ? "gloo" : "c10d";
}

const char* state_name(FlightState state) {
  switch (state) {
    case FlightState::scheduled: return "scheduled";
    case FlightState::started: return "started";
    case FlightState::completed: return "completed";
  }
  return "";
}

bool is_message(const FlightEntry& entry) { return entry.op == "send" || entry.op == "recv"; }

/// The sizes of the result of a collective, from those of its input.
std::optional<Shape> result_of(const FlightEntry& entry, std::int64_t ranks) {
  if (entry.out || !entry.in) return entry.out;
  Shape out = *entry.in;
  if (entry.op == "send") return {};
  if (entry.op == "all_gather") {
    if (out.empty()) out.push_back(ranks);
    else out[0] *= ranks;
  } else if (entry.op == "reduce_scatter" && !out.empty()) {
    out[0] /= ranks;
  }
  return out;
}

/// A group of the file: of a communicator, or of the two ranks of a message.
struct WrittenGroup {
  std::string name, text;
  std::vector<int> ranks;
  std::int64_t queued = 0, started = 0, completed = 0;
};

std::string ranks_list(const std::vector<int>& ranks) {
  std::string text;
  for (const int r : ranks) text += str(text.empty() ? "" : ", ", r);
  return '[' + text + ']';
}

class Writer {
 public:
  explicit Writer(const FlightRecord& record) : record_(record) {
    for (const FlightGroup& g : record.groups)
      groups_.push_back(
          {g.name, g.text + " (" + g.engine + ")", g.ranks, g.queued, g.started, g.completed});
    for (const FlightEntry& e : record.entries) place_.push_back(place_of(e));
  }

  std::string write() && {
    pickle_.dict();
    pickle_.field("version", kVersion).field("comm_lib_version", "").field("rank", record_.rank);
    pickle_.field("reason", record_.reason);
    pickle_.key("pg_config").dict();
    for (const WrittenGroup& g : groups_) {
      pickle_.key(g.name).dict();
      pickle_.field("name", g.name).field("desc", g.text).field("ranks", ranks_list(g.ranks)).end();
    }
    pickle_.end().key("pg_status").dict();
    for (const WrittenGroup& g : groups_) {
      pickle_.key(g.name).dict();
      pickle_.field("last_enqueued_collective", g.queued)
          .field("last_started_collective", g.started)
          .field("last_completed_collective", g.completed)
          .end();
    }
    pickle_.end().key("entries").list();
    for (std::size_t i = 0; i < record_.entries.size(); ++i) write(record_.entries[i], place_[i]);
    pickle_.end().end();
    return std::move(pickle_).finish();
  }

 private:
  /// Where an entry belongs in the file.
  struct Place {
    std::size_t group;
    std::int64_t number;
    std::string op;
  };

  Place place_of(const FlightEntry& e) {
    if (e.group < 0 || static_cast<std::size_t>(e.group) >= record_.groups.size())
      throw ArgumentError(
          str("flight record: expected a group below ", record_.groups.size(), ", got ", e.group));
    const FlightGroup& g = record_.groups[static_cast<std::size_t>(e.group)];
    const std::string library = std::string(library_name(g.engine)) + ':';
    if (!is_message(e)) return {static_cast<std::size_t>(e.group), e.number, library + e.op};
    if (e.peer < 0 || static_cast<std::size_t>(e.peer) >= g.ranks.size())
      throw ArgumentError(
          str("flight record: expected a peer below ", g.ranks.size(), ", got ", e.peer));
    const int peer = g.ranks[static_cast<std::size_t>(e.peer)];
    const bool sends = e.op == "send";
    const int from = sends ? record_.rank : peer, to = sends ? peer : record_.rank;
    auto [at, added] = messages_.try_emplace({e.group, from, to, e.tag}, Messages{groups_.size()});
    if (added) {
      const std::string text = str("from rank ", from, " to rank ", to, " with tag ", e.tag);
      groups_.push_back({str(g.name, ' ', from, "->", to, " tag ", e.tag),
                         text + " (" + g.engine + ")",
                         from == to ? std::vector<int>{from}
                                    : std::vector<int>{std::min(from, to), std::max(from, to)}});
    }
    Messages& messages = at->second;
    const std::int64_t number = e.number != 0 ? e.number : ++messages.counted;
    WrittenGroup& group = groups_[messages.group];
    group.queued = std::max(group.queued, number);
    if (e.state != FlightState::scheduled) group.started = std::max(group.started, number);
    if (e.state == FlightState::completed) group.completed = std::max(group.completed, number);
    // the analyzer numbers the ranks within the group
    const int source = from <= to ? 0 : 1, target = from < to ? 1 : 0;
    const std::string meta = sends ? str(source, "->", target) : str(target, "<-", source);
    return {messages.group, number, library + e.op + ' ' + meta};
  }

  void sizes(std::string_view which, const std::optional<Shape>& shape, DType dtype) {
    pickle_.key(std::string(which) + "_sizes").list();
    if (shape) {
      pickle_.list();
      for (const std::int64_t size : *shape) pickle_.value(size);
      pickle_.end();
    }
    pickle_.end().key(std::string(which) + "_dtypes").list();
    if (shape) pickle_.value(type_name(dtype));
    pickle_.end();
  }

  void time(std::string_view name, std::int64_t ns) {
    pickle_.key(name);
    if (ns == 0) pickle_.none();
    else pickle_.value(ns);
  }

  void write(const FlightEntry& e, const Place& place) {
    const WrittenGroup& group = groups_[place.group];
    pickle_.dict();
    pickle_.field("record_id", e.record).field("pg_id", place.group);
    pickle_.key("process_group").tuple().value(group.name).value(group.text).end();
    pickle_.field("collective_seq_id", place.number).field("p2p_seq_id", place.number);
    pickle_.field("op_id", e.record).field("is_p2p", false).field("profiling_name", place.op);
    // a receive has an output only
    const bool receives = e.op == "recv";
    sizes("input", receives ? std::optional<Shape>() : e.in, e.dtype);
    sizes("output",
          receives ? (e.out ? e.out : e.in)
                   : result_of(e, static_cast<std::int64_t>(group.ranks.size())),
          e.dtype);
    pickle_.field("state", state_name(e.state)).field("failed", e.failed);
    time("time_created_ns", e.created);
    time("time_discovered_started_ns", e.entered);
    time("time_discovered_completed_ns", e.ended);
    pickle_.field("timeout_ms", e.timeout_ms).field("retired", e.ended != 0);
    // PyTorch has the Python stack here; the analyzer prints it with every finding
    pickle_.key("frames").list();
    if (!e.name.empty())
      pickle_.dict().field("name", e.name).field("filename", "braid").field("line", 0).end();
    pickle_.end().end();
  }

  struct Messages {
    std::size_t group;
    std::int64_t counted = 0;
  };
  const FlightRecord& record_;
  std::vector<WrittenGroup> groups_;
  std::vector<Place> place_;
  std::map<std::tuple<int, int, int, int>, Messages> messages_;  // group, from, to, tag
  PickleText pickle_;
};

}  // namespace

std::string flight_record_pickle(const FlightRecord& record) { return Writer(record).write(); }

std::string write_flight_record(const std::string& prefix, const FlightRecord& record) {
  const std::string text = flight_record_pickle(record);
  std::string path = prefix + std::to_string(record.rank);
  io::OutputFile file(path);
  file.write(text.data(), text.size());
  file.commit();
  return path;
}

}  // namespace braid::parallel::detail
