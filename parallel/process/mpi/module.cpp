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
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
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

/// Waits: spins, then yields, then sleeps between looks, so that a rank that waits for long leaves
/// the processor to the others.
void wait(Mpi& mpi, Requests& all, const BraidEnginePoll& poll) {
  const auto start = std::chrono::steady_clock::now();
  for (unsigned round = 0;; ++round) {
    {
      const std::lock_guard lock(mpi_mutex());
      if (mpi.aborted) throw Stop{};
      if (complete(all)) return;
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
#if defined OPEN_MPI || defined MPI_ABI_VERSION  // of either vendor
      // Over TCP, Open MPI 4.1 sends large messages in two halves, whose control messages wait
      // behind the data of the other direction: an exchange takes longer. 1: plain sends.
      (void)::setenv("OMPI_MCA_btl_tcp_flags", "1", 0);
#endif
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
