#pragma once
#define OMPI_SKIP_MPICXX 1  // the C interface only
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "process/engine.hpp"

// What the files of the engine on MPI share. All calls of MPI are nonblocking and polled, so that a
// deadline or an abort ends every wait.
namespace braid::parallel::process::mpi {

/// MPI_THREAD_SERIALIZED: one call at a time, of all communicators. "The lock" below.
std::mutex& mpi_mutex();

/// An error of MPI.
struct Failure {
  std::string text;
};
/// The poll or an abort ended a wait.
struct Stop {};

std::string text_of(const char* call, int code);
/// Throws Failure if `code` is an error.
void check(const char* call, int code);

struct Mpi {
  MPI_Comm collectives = MPI_COMM_NULL, messages = MPI_COMM_NULL;
  int rank = 0, size = 1;
  BraidEngineLink link = kBraidLinkPlain;
  std::int64_t largest = INT_MAX;  // elements of one call
  std::atomic<bool> aborted{false};
  std::vector<char> received;                 // parts of sums; see pieces.cpp
  std::chrono::steady_clock::duration gap{};  // between two messages of sums in pieces, lately
};

/// Requests that have been started together, and how many bytes each receive expects.
struct Requests {
  std::vector<MPI_Request> requests;
  std::vector<std::int64_t> expected;  // bytes of a receive; -1: not one
  std::vector<MPI_Status> statuses;    // of the last look
  MPI_Request& add(std::int64_t bytes = -1) {
    expected.push_back(bytes);
    requests.push_back(MPI_REQUEST_NULL);
    return requests.back();
  }
};

/// Throws Failure unless the message has this many bytes.
void check_size(const MPI_Status& status, std::int64_t expected);
/// Looks once whether all are complete, and checks every status. Requires the lock.
bool complete(Requests& all);
/// Waits: spins, then yields, then sleeps between looks, so that a rank that waits for long leaves
/// the processor to the others.
void wait(Mpi& mpi, Requests& all, const BraidEnginePoll& poll);

/// Starts messages in parts that MPI's int counts can express. Requires the lock.
void send_parts(Mpi& mpi, MPI_Comm comm, const char* data, std::int64_t bytes, int to, int tag,
                Requests& all);
void receive_parts(Mpi& mpi, MPI_Comm comm, char* data, std::int64_t bytes, int from, int tag,
                   Requests& all);

/// Runs a collective. Throws Failure, Stop.
void run_collective(Mpi& mpi, const BraidEngineCall& call, const BraidEnginePoll& poll);
/// kBraidReducePieces.
void reduce_pieces(Mpi& mpi, const BraidEngineCall& call, const BraidEnginePoll& poll);

/// The tags of messages within Mpi::collectives.
enum Tag : int { kParts = 1, kPieces = 2, kSums = 3 };

/// Calls f(offset, count) for parts that MPI's int counts can express.
template <class F> void in_parts(const Mpi& mpi, std::int64_t count, F&& f) {
  for (std::int64_t at = 0; at < count; at += mpi.largest)
    f(at, static_cast<int>(std::min(mpi.largest, count - at)));
}

}  // namespace braid::parallel::process::mpi
