// The engine on MPI, a module of its own for each implementation of MPI. All calls are nonblocking
// and polled, so that a deadline or an abort ends every wait.
#define OMPI_SKIP_MPICXX 1  // the C interface only
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstring>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "process/engine.hpp"

namespace {

using namespace braid::parallel::process;

// MPI_THREAD_SERIALIZED: one call at a time, of all communicators.
std::mutex& mpi_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
int engines = 0;         // open ones; with the mutex
bool finalizes = false;  // this module has initialised MPI; with the mutex
bool failed = false;     // an engine did not end in order: MPI_Finalize could wait for ever

void write(BraidEngineText to, const std::string& text) {
  if (to.capacity == 0) return;
  const std::size_t n = std::min(text.size(), to.capacity - 1);
  std::memcpy(to.data, text.data(), n);
  to.data[n] = '\0';
}

std::string text_of(const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length));
}

struct Failure {
  std::string text;
};
struct Stop {};

void check(const char* call, int code) {
  if (code != MPI_SUCCESS) throw Failure{text_of(call, code)};
}

MPI_Datatype type_of(std::int32_t type) {
  switch (type) {
    case kBraidInt32: return MPI_INT32_T;
    case kBraidInt64: return MPI_INT64_T;
    case kBraidFloat32: return MPI_FLOAT;
    case kBraidFloat64: return MPI_DOUBLE;
    default: return MPI_UINT8_T;
  }
}

MPI_Op op_of(std::int32_t op) {
  switch (op) {
    case kBraidProduct: return MPI_PROD;
    case kBraidMin: return MPI_MIN;
    case kBraidMax: return MPI_MAX;
    default: return MPI_SUM;
  }
}

struct Mpi {
  MPI_Comm collectives = MPI_COMM_NULL, messages = MPI_COMM_NULL;
  int rank = 0, size = 1;
  std::int64_t largest = INT_MAX;  // elements of one call
  std::atomic<bool> aborted{false};
};

/// Requests that have been started together, and how many bytes each receive expects.
struct Requests {
  std::vector<MPI_Request> requests;
  std::vector<std::int64_t> expected;  // bytes of a receive; -1: not one
  MPI_Request& add(std::int64_t bytes = -1) {
    expected.push_back(bytes);
    requests.push_back(MPI_REQUEST_NULL);
    return requests.back();
  }
};

/// Looks once whether all are complete, and checks every status. Requires the lock.
bool complete(Requests& all) {
  int done = 0;
  std::vector<MPI_Status> statuses(all.requests.size());
  const int code = MPI_Testall(static_cast<int>(all.requests.size()), all.requests.data(), &done,
                               statuses.data());
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : statuses)
      if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING)
        throw Failure{text_of("MPI_Testall", status.MPI_ERROR)};
    throw Failure{"MPI_Testall: an error in no status"};
  }
  check("MPI_Testall", code);
  if (done == 0) return false;
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    if (all.expected[i] < 0) continue;
    int bytes = 0;
    check("MPI_Get_count", MPI_Get_count(&statuses[i], MPI_BYTE, &bytes));
    if (bytes != all.expected[i])
      throw Failure{"expected a message of " + std::to_string(all.expected[i]) + " bytes, got " +
                    std::to_string(bytes)};
  }
  return true;
}

/// Waits until look() returns true: spins, then yields, then sleeps between looks, so that a rank
/// that waits for long leaves the processor to the others. look() is called with the lock.
template <class F> void wait(Mpi& mpi, const BraidEnginePoll& poll, F&& look) {
  const auto start = std::chrono::steady_clock::now();
  for (unsigned round = 0;; ++round) {
    {
      const std::lock_guard lock(mpi_mutex());
      if (mpi.aborted) throw Stop{};
      if (look()) return;
    }
    if (round % 16 != 15) continue;
    if (poll.stopped(poll.context) != 0) throw Stop{};
    if (round < 256) continue;
    if (round % 64 == 63 &&
        std::chrono::steady_clock::now() - start > std::chrono::milliseconds(50))
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    else ::sched_yield();
  }
}

void wait(Mpi& mpi, Requests& all, const BraidEnginePoll& poll) {
  wait(mpi, poll, [&] { return complete(all); });
}

/// Starts with the lock, then waits.
template <class F>
void run_one(Mpi& mpi, const BraidEnginePoll& poll, const char* name, F&& start) {
  Requests all;
  {
    const std::lock_guard lock(mpi_mutex());
    check(name, start(all.add()));
  }
  wait(mpi, all, poll);
}

/// Calls f(offset, count) for parts that MPI's int counts can express.
template <class F> void in_parts(const Mpi& mpi, std::int64_t count, F&& f) {
  for (std::int64_t at = 0; at < count; at += mpi.largest)
    f(at, static_cast<int>(std::min(mpi.largest, count - at)));
}

void send_parts(Mpi& mpi, MPI_Comm comm, const char* data, std::int64_t bytes, int to, int tag,
                Requests& all) {
  if (bytes == 0) check("MPI_Isend", MPI_Isend(data, 0, MPI_BYTE, to, tag, comm, &all.add()));
  in_parts(mpi, bytes, [&](std::int64_t at, int n) {
    check("MPI_Isend", MPI_Isend(data + at, n, MPI_BYTE, to, tag, comm, &all.add()));
  });
}

void receive_parts(Mpi& mpi, MPI_Comm comm, char* data, std::int64_t bytes, int from, int tag,
                   Requests& all) {
  if (bytes == 0) check("MPI_Irecv", MPI_Irecv(data, 0, MPI_BYTE, from, tag, comm, &all.add(0)));
  in_parts(mpi, bytes, [&](std::int64_t at, int n) {
    check("MPI_Irecv", MPI_Irecv(data + at, n, MPI_BYTE, from, tag, comm, &all.add(n)));
  });
}

void all_to_all(Mpi& mpi, const BraidEngineCall& call, const BraidEnginePoll& poll) {
  Requests all;
  const auto* in = static_cast<const char*>(call.in);
  auto* out = static_cast<char*>(call.out);
  std::vector<std::int64_t> from(1, 0), to(1, 0);
  for (int r = 0; r < mpi.size; ++r) {
    from.push_back(from.back() + call.in_counts[r] * call.element_bytes);
    to.push_back(to.back() + call.out_counts[r] * call.element_bytes);
  }
  const auto at = [](int r) { return static_cast<std::size_t>(r); };
  {
    const std::lock_guard lock(mpi_mutex());
    all.requests.reserve(static_cast<std::size_t>(2 * mpi.size));
    for (int i = 1; i < mpi.size; ++i) {  // every rank begins with another one
      const int r = (mpi.rank + i) % mpi.size;
      const std::int64_t bytes = to[at(r) + 1] - to[at(r)];
      if (bytes > 0) receive_parts(mpi, mpi.collectives, out + to[at(r)], bytes, r, 1, all);
    }
    for (int i = 1; i < mpi.size; ++i) {
      const int r = (mpi.rank - i + mpi.size) % mpi.size;
      const std::int64_t bytes = from[at(r) + 1] - from[at(r)];
      if (bytes > 0) send_parts(mpi, mpi.collectives, in + from[at(r)], bytes, r, 1, all);
    }
  }
  const std::size_t me = at(mpi.rank);
  if (from[me + 1] > from[me] && call.skips_own == 0)
    std::memcpy(out + to[me], in + from[me], static_cast<std::size_t>(from[me + 1] - from[me]));
  wait(mpi, all, poll);
}

void all_gather(Mpi& mpi, const BraidEngineCall& call, const BraidEnginePoll& poll) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(mpi.size)), at(counts.size() + 1);
  for (std::size_t r = 0; r < counts.size(); ++r) {
    counts[r] = (call.out_counts != nullptr ? call.out_counts[r] : call.count) * call.element_bytes;
    at[r + 1] = at[r] + counts[r];
  }
  auto* const out = static_cast<char*>(call.out);
  const auto me = static_cast<std::size_t>(mpi.rank);
  const bool in_place = call.in == out + at[me];
  if (at.back() <= std::min<std::int64_t>(mpi.largest, INT_MAX)) {
    std::vector<int> n(counts.begin(), counts.end()), offsets(at.begin(), at.end() - 1);
    return run_one(mpi, poll, "MPI_Iallgatherv", [&](MPI_Request& request) {
      if (call.out_counts == nullptr)
        return MPI_Iallgather(in_place ? MPI_IN_PLACE : call.in, n[me], MPI_BYTE, out, n[me],
                              MPI_BYTE, mpi.collectives, &request);
      return MPI_Iallgatherv(in_place ? MPI_IN_PLACE : call.in, n[me], MPI_BYTE, out, n.data(),
                             offsets.data(), MPI_BYTE, mpi.collectives, &request);
    });
  }
  Requests all;
  {
    const std::lock_guard lock(mpi_mutex());
    for (int i = 1; i < mpi.size; ++i) {
      const auto r = static_cast<std::size_t>((mpi.rank + i) % mpi.size);
      if (counts[r] > 0)
        receive_parts(mpi, mpi.collectives, out + at[r], counts[r], static_cast<int>(r), 1, all);
    }
    for (int i = 1; i < mpi.size && counts[me] > 0; ++i)
      send_parts(mpi, mpi.collectives, static_cast<const char*>(call.in), counts[me],
                 (mpi.rank - i + mpi.size) % mpi.size, 1, all);
  }
  if (!in_place && counts[me] > 0)
    std::memcpy(out + at[me], call.in, static_cast<std::size_t>(counts[me]));
  wait(mpi, all, poll);
}

/// All-reduce of large tensors: a ring in which each rank adds a part and passes it on, in segments,
/// so that adding and both directions of the network work at the same time. MPI_Iallreduce of Open
/// MPI 4.1 takes twice as long over TCP. The functions require the lock.
class Ring {
 public:
  Ring(Mpi& mpi, char* data, std::int64_t count, std::int64_t bytes, MPI_Datatype type, MPI_Op op)
      : mpi_(mpi), data_(data), count_(count), bytes_(bytes), type_(type), op_(op) {
    const std::int64_t part = count / mpi.size + 1;
    segments_ = (part + most() - 1) / most();
    slot_ = static_cast<std::size_t>((part / segments_ + 1) * bytes);
    scratch_.reset(new char[kWindow * slot_]);
    sends_.assign(static_cast<std::size_t>(items()), MPI_REQUEST_NULL);
    for (std::int64_t k = 0; k < segments_; ++k) send(k, mpi.rank);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  /// If it was stopped, MPI may still write to the scratch memory, which is then left behind.
  ~Ring() {
    if (!ended_) (void)scratch_.release();
  }
  /// Does what can be done. Returns whether all is complete.
  bool advance() {
    while (posted_ < items() && posted_ < done_ + kWindow && post()) ++posted_;
    for (; done_ < posted_ && arrived(); ++done_) {
      const std::int64_t part = received_part(done_ / segments_);
      const Segment s = segment(part, done_ % segments_);
      if (done_ / segments_ < mpi_.size - 1)
        check("MPI_Reduce_local", MPI_Reduce_local(slot(done_), s.data, s.count, type_, op_));
      if (done_ + segments_ < items()) send(done_ + segments_, part);
    }
    if (done_ < items()) return false;
    int sent = 0;
    check("MPI_Testall",
          MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &sent, MPI_STATUSES_IGNORE));
    return ended_ = sent != 0;
  }

 private:
  static constexpr std::int64_t kWindow = 8; inline static const std::int64_t kBytes = std::getenv("SEG") ? std::atoll(std::getenv("SEG")) : 131072;
  struct Segment {
    char* data;
    int count;
  };
  [[nodiscard]] std::int64_t most() const {
    return std::max<std::int64_t>(std::min(kBytes / bytes_, mpi_.largest), 1);
  }
  /// A step passes one part on; an item is one segment of it. The first size - 1 steps add.
  [[nodiscard]] std::int64_t items() const { return 2 * (mpi_.size - 1) * segments_; }
  [[nodiscard]] std::int64_t received_part(std::int64_t step) const {
    const std::int64_t n = mpi_.size, adds = n - 1;
    return (mpi_.rank + 2 * n - (step < adds ? step + 1 : step - adds)) % n;
  }
  [[nodiscard]] Segment segment(std::int64_t part, std::int64_t k) const {
    const std::int64_t each = count_ / mpi_.size, more = count_ % mpi_.size;
    const std::int64_t first = part * each + std::min(part, more), n = each + (part < more ? 1 : 0);
    const std::int64_t a = n / segments_ * k + std::min(k, n % segments_),
                       b = n / segments_ + (k < n % segments_ ? 1 : 0);
    return {data_ + (first + a) * bytes_, static_cast<int>(b)};
  }
  [[nodiscard]] char* slot(std::int64_t item) const {
    return scratch_.get() + static_cast<std::size_t>(item % kWindow) * slot_;
  }
  void send(std::int64_t item, std::int64_t part) {
    const Segment s = segment(part, item % segments_);
    check("MPI_Isend", MPI_Isend(s.data, s.count, type_, (mpi_.rank + 1) % mpi_.size, kTag,
                                 mpi_.collectives, &sends_[static_cast<std::size_t>(item)]));
  }
  /// Starts the next receive. Returns false if its memory is still being sent.
  bool post() {
    const std::int64_t step = posted_ / segments_, adds = mpi_.size - 1;
    const Segment s = segment(received_part(step), posted_ % segments_);
    if (step >= adds) {
      int sent = 0;
      MPI_Request& before = sends_[static_cast<std::size_t>(posted_ - adds * segments_)];
      check("MPI_Test", MPI_Test(&before, &sent, MPI_STATUS_IGNORE));
      if (sent == 0) return false;
    }
    check("MPI_Irecv", MPI_Irecv(step < adds ? slot(posted_) : s.data, s.count, type_,
                                 (mpi_.rank + mpi_.size - 1) % mpi_.size, kTag, mpi_.collectives,
                                 &receives_[posted_ % kWindow]));
    return true;
  }
  bool arrived() {
    int here = 0, count = 0;
    MPI_Status status;
    check("MPI_Test", MPI_Test(&receives_[done_ % kWindow], &here, &status));
    if (here == 0) return false;
    check("MPI_Get_count", MPI_Get_count(&status, type_, &count));
    const Segment s = segment(received_part(done_ / segments_), done_ % segments_);
    if (count != s.count)
      throw Failure{"expected a message of " + std::to_string(s.count) + " elements, got " +
                    std::to_string(count)};
    return true;
  }

  static constexpr int kTag = 2;
  Mpi& mpi_;
  char* data_;
  std::int64_t count_, bytes_, segments_ = 1, posted_ = 0, done_ = 0;
  MPI_Datatype type_;
  MPI_Op op_;
  std::size_t slot_ = 0;
  std::unique_ptr<char[]> scratch_;
  MPI_Request receives_[kWindow] = {};
  std::vector<MPI_Request> sends_;
  bool ended_ = false;
};

constexpr std::int64_t kRingBytes = 256 << 10;  // below, MPI's own is as fast

void run_call(Mpi& mpi, const BraidEngineCall& call, const BraidEnginePoll& poll) {
  const auto* in = static_cast<const char*>(call.in);
  auto* out = static_cast<char*>(call.out);
  const MPI_Datatype type = type_of(call.type);
  const MPI_Op op = op_of(call.op);
  const bool root = call.peer == mpi.rank;
  switch (call.kind) {
    case kBraidBroadcast:
      in_parts(mpi, call.count * call.element_bytes, [&](std::int64_t at, int n) {
        run_one(mpi, poll, "MPI_Ibcast", [&](MPI_Request& request) {
          return MPI_Ibcast((root ? const_cast<char*>(in) : out) + at, n, MPI_BYTE, call.peer,
                            mpi.collectives, &request);
        });
      });
      return;
    case kBraidReduce:
      in_parts(mpi, call.count, [&](std::int64_t at, int n) {
        const std::int64_t offset = at * call.element_bytes;
        run_one(mpi, poll, "MPI_Ireduce", [&](MPI_Request& request) {
          return MPI_Ireduce(root && in == out ? MPI_IN_PLACE : in + offset,
                             root ? out + offset : nullptr, n, type, op, call.peer, mpi.collectives,
                             &request);
        });
      });
      return;
    case kBraidAllReduce:
      if (call.count * call.element_bytes >= kRingBytes && mpi.size > 1) {
        if (in != out)
          std::memcpy(out, in, static_cast<std::size_t>(call.count * call.element_bytes));
        std::optional<Ring> ring;
        return wait(mpi, poll, [&] {
          if (!ring) ring.emplace(mpi, out, call.count, call.element_bytes, type, op);
          return ring->advance();
        });
      }
      in_parts(mpi, call.count, [&](std::int64_t at, int n) {
        const std::int64_t offset = at * call.element_bytes;
        run_one(mpi, poll, "MPI_Iallreduce", [&](MPI_Request& request) {
          return MPI_Iallreduce(in == out ? MPI_IN_PLACE : in + offset, out + offset, n, type, op,
                                mpi.collectives, &request);
        });
      });
      return;
    case kBraidAllGather: return all_gather(mpi, call, poll);
    case kBraidAllToAll: return all_to_all(mpi, call, poll);
    default: throw Failure{"expected a collective, got another call"};
  }
}

// ---- the table

Mpi& of(void* engine) { return *static_cast<Mpi*>(engine); }

void set_up(Mpi& mpi) {
  check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(mpi.collectives, MPI_ERRORS_RETURN));
  check("MPI_Comm_dup", MPI_Comm_dup(mpi.collectives, &mpi.messages));
  check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(mpi.messages, MPI_ERRORS_RETURN));
  check("MPI_Comm_rank", MPI_Comm_rank(mpi.collectives, &mpi.rank));
  check("MPI_Comm_size", MPI_Comm_size(mpi.collectives, &mpi.size));
  ++engines;
}

void library(BraidEngineText text) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(version, &length) != MPI_SUCCESS) version[0] = '\0';
  std::string line = version;
  line = line.substr(0, line.find_first_of(",\n"));  // Open MPI v4.1.4 | MPICH Version:      4.0.2
  std::string clean;
  for (const char c : line)
    if (!((c == ' ' || c == '\t') && (clean.empty() || clean.back() == ' ')))
      clean += c == '\t' ? ' ' : c;
  write(text, clean);
}

void* open(const BraidEngineOpen* options, BraidEngineText error) {
  const std::lock_guard lock(mpi_mutex());
  try {
    int ready = 0, ended = 0, provided = MPI_THREAD_SINGLE;
    check("MPI_Initialized", MPI_Initialized(&ready));
    check("MPI_Finalized", MPI_Finalized(&ended));
    if (ended != 0) throw Failure{"MPI has been finalized"};
    if (ready == 0) {
      check("MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
      finalizes = true;
    } else {
      check("MPI_Query_thread", MPI_Query_thread(&provided));
    }
    if (provided < MPI_THREAD_SERIALIZED)
      throw Failure{"expected MPI with at least MPI_THREAD_SERIALIZED, got a lower level"};
    auto mpi = std::make_unique<Mpi>();
    if (options->largest > 0) mpi->largest = std::min<std::int64_t>(options->largest, INT_MAX);
    check("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &mpi->collectives));
    set_up(*mpi);
    return mpi.release();
  } catch (const Failure& e) {
    write(error, e.text);
    return nullptr;
  }
}

std::int32_t rank(void* engine) { return of(engine).rank; }
std::int32_t size(void* engine) { return of(engine).size; }

std::int32_t run(void* engine, const BraidEngineCall* call, const BraidEnginePoll* poll,
                 BraidEngineText error) {
  try {
    run_call(of(engine), *call, *poll);
    return kBraidDone;
  } catch (const Stop&) {
    return kBraidStopped;
  } catch (const Failure& e) {
    write(error, e.text);
    return kBraidFailed;
  }
}

void* start(void* engine, const BraidEngineCall* call, BraidEngineText error) {
  Mpi& mpi = of(engine);
  auto all = std::make_unique<Requests>();
  const std::lock_guard lock(mpi_mutex());
  try {
    if (mpi.aborted) throw Failure{"the engine was aborted"};
    const std::int64_t bytes = call->count * call->element_bytes;
    if (call->kind == kBraidSend)
      send_parts(mpi, mpi.messages, static_cast<const char*>(call->in), bytes, call->peer,
                 call->tag, *all);
    else
      receive_parts(mpi, mpi.messages, static_cast<char*>(call->out), bytes, call->peer, call->tag,
                    *all);
    return all.release();
  } catch (const Failure& e) {
    write(error, e.text);
    return nullptr;
  }
}

std::int32_t test(void* engine, void* request, BraidEngineText error) {
  auto* const all = static_cast<Requests*>(request);
  const std::lock_guard lock(mpi_mutex());
  if (of(engine).aborted) return kBraidPending;
  try {
    if (!complete(*all)) return kBraidPending;
    delete all;
    return kBraidDone;
  } catch (const Failure& e) {
    write(error, e.text);
    delete all;
    return kBraidFailed;
  }
}

void* split(void* engine, const char*, std::int32_t color, std::int32_t new_rank, std::int32_t,
            BraidEngineText error) {
  Mpi& mpi = of(engine);
  const std::lock_guard lock(mpi_mutex());
  try {
    auto part = std::make_unique<Mpi>();
    part->largest = mpi.largest;
    check("MPI_Comm_split", MPI_Comm_split(mpi.collectives, color < 0 ? MPI_UNDEFINED : color,
                                           new_rank, &part->collectives));
    if (color < 0) return nullptr;
    set_up(*part);
    return part.release();
  } catch (const Failure& e) {
    write(error, e.text);
    return nullptr;
  }
}

void abort(void* engine) { of(engine).aborted = true; }

void close(void* engine, std::int32_t orderly) {
  const std::unique_ptr<Mpi> mpi(&of(engine));
  const std::lock_guard lock(mpi_mutex());
  --engines;
  if (orderly == 0 || mpi->aborted) failed = true;
  int ended = 0;
  if (failed || MPI_Finalized(&ended) != MPI_SUCCESS || ended != 0) return;
  (void)MPI_Comm_free(&mpi->messages);
  (void)MPI_Comm_free(&mpi->collectives);
  if (engines == 0 && finalizes) (void)MPI_Finalize();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const BraidEngineTable* braid_engine() {
  static const BraidEngineTable table{kEngineVersion, 1,      "mpi", &library, &open,  &rank, &size,
                                      &run,           &start, &test, &split,   &abort, &close};
  return &table;
}
