// The engine on MPI, a module of its own for each implementation of MPI: its table.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "process/mpi/mpi.hpp"

namespace braid::parallel::process::mpi {
namespace {

int engines = 0;         // open ones; with the mutex
bool finalizes = false;  // this module has initialised MPI; with the mutex
bool failed = false;     // an engine did not end in order: MPI_Finalize could wait for ever

void write(BraidEngineText to, const std::string& text) {
  if (to.capacity == 0) return;
  const std::size_t n = std::min(text.size(), to.capacity - 1);
  std::memcpy(to.data, text.data(), n);
  to.data[n] = '\0';
}

Mpi& of(void* engine) { return *static_cast<Mpi*>(engine); }

/// The same on all ranks. BRAID_LINK=network: as between hosts, for a test on one.
BraidEngineLink link_of(Mpi& mpi) {
  MPI_Comm host = MPI_COMM_NULL;
  check("MPI_Comm_split_type",
        MPI_Comm_split_type(mpi.collectives, MPI_COMM_TYPE_SHARED, mpi.rank, MPI_INFO_NULL, &host));
  int here = 0, fewest = 0;
  check("MPI_Comm_size", MPI_Comm_size(host, &here));
  check("MPI_Comm_free", MPI_Comm_free(&host));
  if (const char* const link = std::getenv("BRAID_LINK"); link && std::strcmp(link, "network") == 0)
    here = 0;
  check("MPI_Allreduce", MPI_Allreduce(&here, &fewest, 1, MPI_INT, MPI_MIN, mpi.collectives));
  return fewest == mpi.size ? kBraidLinkMemory : kBraidLinkPieces;
}

void set_up(Mpi& mpi) {
  check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(mpi.collectives, MPI_ERRORS_RETURN));
  check("MPI_Comm_dup", MPI_Comm_dup(mpi.collectives, &mpi.messages));
  check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(mpi.messages, MPI_ERRORS_RETURN));
  check("MPI_Comm_rank", MPI_Comm_rank(mpi.collectives, &mpi.rank));
  check("MPI_Comm_size", MPI_Comm_size(mpi.collectives, &mpi.size));
  mpi.link = link_of(mpi);
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
std::int32_t link(void* engine) { return of(engine).link; }

std::int32_t run(void* engine, const BraidEngineCall* call, const BraidEnginePoll* poll,
                 BraidEngineText error) {
  try {
    run_collective(of(engine), *call, *poll);
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
  std::unique_ptr<Mpi> mpi(&of(engine));
  const std::lock_guard lock(mpi_mutex());
  --engines;
  if (orderly == 0 || mpi->aborted) {
    failed = true;
    // calls of other communicators may still complete messages into its memory
    static auto& kept = *new std::vector<std::unique_ptr<Mpi>>;
    return kept.push_back(std::move(mpi));
  }
  int ended = 0;
  if (failed || MPI_Finalized(&ended) != MPI_SUCCESS || ended != 0) return;
  (void)MPI_Comm_free(&mpi->messages);
  (void)MPI_Comm_free(&mpi->collectives);
  if (engines == 0 && finalizes) (void)MPI_Finalize();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const BraidEngineTable* braid_engine() {
  static const BraidEngineTable table{kEngineVersion, 1,      "mpi",  &library, &open,
                                      &rank,          &size,  &link,  &run,     &start,
                                      &test,          &split, &abort, &close};
  return &table;
}

}  // namespace braid::parallel::process::mpi
