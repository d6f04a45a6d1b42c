#include "process/mpi/mpi.hpp"

#include <sched.h>

#include <chrono>
#include <mutex>
#include <thread>

namespace braid::parallel::process::mpi {

std::mutex& mpi_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

std::string text_of(const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length));
}

void check(const char* call, int code) {
  if (code != MPI_SUCCESS) throw Failure{text_of(call, code)};
}

void check_size(const MPI_Status& status, std::int64_t expected) {
  int bytes = 0;
  check("MPI_Get_count", MPI_Get_count(&status, MPI_BYTE, &bytes));
  if (bytes != expected)
    throw Failure{"expected a message of " + std::to_string(expected) + " bytes, got " +
                  std::to_string(bytes)};
}

bool complete(Requests& all) {
  int done = 0;
  all.statuses.resize(all.requests.size());
  const int code = MPI_Testall(static_cast<int>(all.requests.size()), all.requests.data(), &done,
                               all.statuses.data());
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : all.statuses)
      if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING)
        throw Failure{text_of("MPI_Testall", status.MPI_ERROR)};
    throw Failure{"MPI_Testall: an error in no status"};
  }
  check("MPI_Testall", code);
  if (done == 0) return false;
  for (std::size_t i = 0; i < all.statuses.size(); ++i) {
    if (all.expected[i] >= 0) check_size(all.statuses[i], all.expected[i]);
  }
  return true;
}

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

}  // namespace braid::parallel::process::mpi
