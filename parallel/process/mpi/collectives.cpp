// The collectives of the engine on MPI, but for sums in pieces.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "process/mpi/mpi.hpp"

namespace braid::parallel::process::mpi {
namespace {

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

struct Span {
  char* data;
  std::int64_t bytes;
};

/// Sends to_rank(r) to each other rank r, and receives of_rank(r) from it; calls `meanwhile`, then
/// waits. Every rank begins with another one.
template <class To, class From, class F>
void exchange(Mpi& mpi, const BraidEnginePoll& poll, const To& to_rank, const From& of_rank,
              const F& meanwhile) {
  Requests all;
  {
    const std::lock_guard lock(mpi_mutex());
    all.requests.reserve(static_cast<std::size_t>(2 * mpi.size));
    for (int i = 1; i < mpi.size; ++i) {
      const int r = (mpi.rank + i) % mpi.size;
      if (const Span s = of_rank(r); s.bytes > 0)
        receive_parts(mpi, mpi.collectives, s.data, s.bytes, r, kParts, all);
    }
    for (int i = 1; i < mpi.size; ++i) {
      const int r = (mpi.rank - i + mpi.size) % mpi.size;
      if (const Span s = to_rank(r); s.bytes > 0)
        send_parts(mpi, mpi.collectives, s.data, s.bytes, r, kParts, all);
    }
  }
  meanwhile();
  wait(mpi, all, poll);
}

void all_to_all(Mpi& mpi, const BraidEngineCall& call, const BraidEnginePoll& poll) {
  auto* const in = static_cast<char*>(const_cast<void*>(call.in));  // only read
  auto* const out = static_cast<char*>(call.out);
  std::vector<std::int64_t> from(1, 0), to(1, 0);
  for (int r = 0; r < mpi.size; ++r) {
    from.push_back(from.back() + call.in_counts[r] * call.element_bytes);
    to.push_back(to.back() + call.out_counts[r] * call.element_bytes);
  }
  const auto part = [](char* data, const std::vector<std::int64_t>& at, int r) {
    const auto i = static_cast<std::size_t>(r);
    return Span{data + at[i], at[i + 1] - at[i]};
  };
  exchange(
      mpi, poll, [&](int r) { return part(in, from, r); }, [&](int r) { return part(out, to, r); },
      [&] {
        const Span own = part(in, from, mpi.rank);
        if (own.bytes > 0 && call.skips_own == 0)
          std::memcpy(part(out, to, mpi.rank).data, own.data, static_cast<std::size_t>(own.bytes));
      });
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
  // bytes: within a host, larger ones are faster without the schedule of a nonblocking collective
  constexpr std::int64_t kScheduled = 64 * 1024;
  if (at.back() <= std::min(mpi.largest, mpi.link == kBraidLinkMemory ? kScheduled : INT_MAX)) {
    std::vector<int> n(counts.begin(), counts.end()), offsets(at.begin(), at.end() - 1);
    return run_one(mpi, poll, "MPI_Iallgatherv", [&](MPI_Request& request) {
      if (call.out_counts == nullptr)
        return MPI_Iallgather(in_place ? MPI_IN_PLACE : call.in, n[me], MPI_BYTE, out, n[me],
                              MPI_BYTE, mpi.collectives, &request);
      return MPI_Iallgatherv(in_place ? MPI_IN_PLACE : call.in, n[me], MPI_BYTE, out, n.data(),
                             offsets.data(), MPI_BYTE, mpi.collectives, &request);
    });
  }
  const Span own{static_cast<char*>(const_cast<void*>(call.in)), counts[me]};  // only read
  exchange(
      mpi, poll, [&](int) { return own; },
      [&](int r) {
        const auto i = static_cast<std::size_t>(r);
        return Span{out + at[i], counts[i]};
      },
      [&] {
        if (!in_place && own.bytes > 0)
          std::memcpy(out + at[me], own.data, static_cast<std::size_t>(own.bytes));
      });
}

}  // namespace

void run_collective(Mpi& mpi, const BraidEngineCall& call, const BraidEnginePoll& poll) {
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
    case kBraidReducePieces: return reduce_pieces(mpi, call, poll);
    case kBraidAllGather: return all_gather(mpi, call, poll);
    case kBraidAllToAll: return all_to_all(mpi, call, poll);
    default: throw Failure{"expected a collective, got another call"};
  }
}

}  // namespace braid::parallel::process::mpi
