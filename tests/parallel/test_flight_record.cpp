// The file of a flight record. flight_record.sh reads it with PyTorch's analyzer, where it is
// installed; here a reader of the few opcodes of a pickle that it may have.
#include <cstdlib>
#include <cstring>

#include <braid/parallel/internal/flight_record.hpp>

#include "support/errors.hpp"
#include "support/temporary.hpp"

using namespace braid;
using namespace braid::test;
using namespace braid::parallel::detail;

namespace {

/// Returns the value of a pickle as Python prints it. Throws for an opcode that could name a class
/// or call something.
class Unpickled {
 public:
  static std::string text(const std::string& pickle) { return Unpickled(pickle).run(); }

 private:
  explicit Unpickled(const std::string& p) : p_(p) {}
  std::int64_t number(int bytes) {
    std::uint64_t n = 0;
    for (int i = 0; i < bytes; ++i)
      n |= std::uint64_t{static_cast<unsigned char>(p_.at(at_++))} << (8 * i);
    return bytes == 4 ? static_cast<std::int32_t>(n) : static_cast<std::int64_t>(n);
  }
  std::vector<std::string> to_mark() {
    std::vector<std::string> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                                   stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  std::string joined(const std::vector<std::string>& items) {
    std::string s;
    for (const std::string& i : items) s += (s.empty() ? "" : ", ") + i;
    return s;
  }
  std::string run() {
    check(p_.substr(0, 2) == "\x80\x02", "protocol 2");
    at_ = 2;
    while (true) {
      switch (const char op = p_.at(at_++)) {
        case '(': marks_.push_back(stack_.size()); break;
        case 'l': stack_.push_back('[' + joined(to_mark()) + ']'); break;
        case 't': stack_.push_back('(' + joined(to_mark()) + ')'); break;
        case 'd': {
          const std::vector<std::string> items = to_mark();
          check(items.size() % 2 == 0, "pairs");
          std::string s;
          for (std::size_t i = 0; i < items.size(); i += 2)
            s += (i == 0 ? "" : ", ") + items[i] + ": " + items[i + 1];
          stack_.push_back('{' + s + '}');
          break;
        }
        case 'X': {
          const auto n = static_cast<std::size_t>(number(4));
          stack_.push_back('\'' + p_.substr(at_, n) + '\'');
          at_ += n;
          break;
        }
        case 'J': stack_.push_back(std::to_string(number(4))); break;
        case '\x8a':
          check(p_.at(at_++) == 8, "8 bytes");
          stack_.push_back(std::to_string(number(8)));
          break;
        case '\x88': stack_.emplace_back("True"); break;
        case '\x89': stack_.emplace_back("False"); break;
        case 'N': stack_.emplace_back("None"); break;
        case '.':
          check(at_ == p_.size() && stack_.size() == 1 && marks_.empty(), "one value");
          return stack_[0];
        default: throw Error(str("opcode ", static_cast<int>(op)));
      }
    }
  }

  const std::string& p_;
  std::size_t at_ = 0;
  std::vector<std::string> stack_;
  std::vector<std::size_t> marks_;
};

/// A record of three ranks: two have entered the second all-reduce, rank 2 a broadcast. Before,
/// rank 0 and rank 1 have exchanged messages, in the other order each.
FlightRecord record_of(int rank, bool differs) {
  FlightRecord r{.rank = rank, .reason = "rank 2 called something else"};
  r.groups.push_back({"0", "world", "mpi", {0, 1, 2}, 2, 2, 1});
  const auto add = [&](FlightEntry e) {
    e.record = static_cast<std::int64_t>(r.entries.size());
    e.created = 1'795'609'842'778'353'287 + e.record;
    e.entered = e.created + 1000;
    e.ended = e.state == FlightState::completed ? e.created + 5000 : 0;
    e.timeout_ms = 600'000;
    r.entries.push_back(e);
  };
  const auto done = FlightState::completed;
  add({.op = "all_reduce", .name = "bucket 0", .number = 1, .in = Shape{250, 4}, .state = done});
  if (rank < 2) {
    for (const bool sends : {rank == 0, rank != 0})
      add({.op = sends ? "send" : "recv",
           .peer = 1 - rank,
           .tag = 7,
           .in = Shape{sends == (rank == 0) ? 3 : 5},
           .dtype = DType::int64,
           .state = done});
  }
  add({.op = "all_gather",
       .number = 2,
       .in = Shape{2, 3},
       .dtype = DType::bfloat16,
       .state = done});
  add({.op = "reduce_scatter", .number = 3, .in = Shape{6, 3}, .state = done});
  add({.op = "barrier", .number = 4, .state = done});
  const bool other = differs && rank == 2;
  add({.op = other ? "broadcast" : "all_reduce",
       .name = "bucket 1",
       .number = 5,
       .in = Shape{64},
       .state = FlightState::started});
  return r;
}

}  // namespace

TEST_CASE("flight record: the file has what PyTorch's analyzer reads", "[flight_record]") {
  const std::string text = Unpickled::text(flight_record_pickle(record_of(1, true)));
  INFO(text);
  const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  CHECK(text.starts_with(
      "{'version': '2.10', 'comm_lib_version': '', 'rank': 1, 'reason': 'rank 2 called something "
      "else', 'pg_config': {'0': {'name': '0', 'desc': 'world (mpi)', 'ranks': '[0, 1, 2]'}, "
      "'0 0->1 tag 7': {'name': '0 0->1 tag 7', 'desc': 'from rank 0 to rank 1 with tag 7 (mpi)', "
      "'ranks': '[0, 1]'}, '0 1->0 tag 7': "));
  CHECK(
      has("'pg_status': {'0': {'last_enqueued_collective': 2, 'last_started_collective': 2, "
          "'last_completed_collective': 1}, '0 0->1 tag 7': {'last_enqueued_collective': 1, "));
  CHECK(
      has("{'record_id': 0, 'pg_id': 0, 'process_group': ('0', 'world (mpi)'), "
          "'collective_seq_id': 1, 'p2p_seq_id': 1, 'op_id': 0, 'is_p2p': False, "
          "'profiling_name': 'c10d:all_reduce', 'input_sizes': [[250, 4]], 'input_dtypes': "
          "['Float'], 'output_sizes': [[250, 4]], 'output_dtypes': ['Float'], 'state': "
          "'completed', 'failed': False, 'time_created_ns': 1795609842778353287, "
          "'time_discovered_started_ns': 1795609842778354287, 'time_discovered_completed_ns': "
          "1795609842778358287, 'timeout_ms': 600000, 'retired': True, 'frames': [{'name': "
          "'bucket 0', 'filename': 'braid', 'line': 0}]}"));
  CHECK(
      has("'profiling_name': 'c10d:send 1->0', 'input_sizes': [[5]], 'input_dtypes': ['Long'], "
          "'output_sizes': [], 'output_dtypes': []"));
  CHECK(
      has("'profiling_name': 'c10d:recv 1<-0', 'input_sizes': [], 'input_dtypes': [], "
          "'output_sizes': [[3]], 'output_dtypes': ['Long']"));
  CHECK(has("'input_sizes': [[2, 3]], 'input_dtypes': ['BFloat16'], 'output_sizes': [[6, 3]]"));
  CHECK(has("'input_sizes': [[6, 3]], 'input_dtypes': ['Float'], 'output_sizes': [[2, 3]]"));
  CHECK(has("'c10d:barrier', 'input_sizes': [], 'input_dtypes': [], 'output_sizes': []"));
  CHECK(
      has("'state': 'started', 'failed': False, 'time_created_ns': 1795609842778353293, "
          "'time_discovered_started_ns': 1795609842778354293, 'time_discovered_completed_ns': "
          "None, 'timeout_ms': 600000, 'retired': False"));
}

TEST_CASE("flight record: texts that are no UTF-8, large numbers, and what does not fit",
          "[flight_record][errors]") {
  FlightRecord r{.rank = 3,
                 .reason =
                     "a\xff"
                     "b"};
  r.groups.push_back({"0", "world", "gloo", {0, 1, 2, 3}, std::int64_t{1} << 40, -1, 0});
  const std::string text = Unpickled::text(flight_record_pickle(r));
  CHECK(text.find("'reason': 'a\xef\xbf\xbd"
                  "b'") != std::string::npos);
  CHECK(text.find("'last_enqueued_collective': 1099511627776, 'last_started_collective': -1") !=
        std::string::npos);
  r.entries.push_back({.group = 1, .op = "barrier"});
  CHECK_THROWS_TEXT(ArgumentError, "flight record: expected a group below 1, got 1",
                    flight_record_pickle(r));
  r.entries.back() = {.op = "send", .peer = 4};
  CHECK_THROWS_TEXT(ArgumentError, "flight record: expected a peer below 4, got 4",
                    flight_record_pickle(r));
  r.entries.clear();
  const TemporaryFolder folder;
  CHECK(write_flight_record(folder / "flight_", r) == folder / "flight_3");
  CHECK(folder.names() == std::vector<std::string>{"flight_3"});
}

TEST_CASE("flight record: files for flight_record.sh", "[.flight_record_files]") {
  const char* const folder = std::getenv("BRAID_FLIGHT_DIR");
  REQUIRE(folder != nullptr);
  for (int rank = 0; rank < 3; ++rank) {
    write_flight_record(str(folder, "/same/flight_"), record_of(rank, false));
    write_flight_record(str(folder, "/differs/flight_"), record_of(rank, true));
    if (rank == 2) continue;
    write_flight_record(str(folder, "/missing/flight_"), record_of(rank, false));
  }
}
