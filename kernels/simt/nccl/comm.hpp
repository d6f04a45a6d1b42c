#pragma once
#include <atomic>
#include <map>
#include <utility>

#include "simt/nccl/communicator.hpp"

namespace braid::simt::nccl {

/// Collectives of a group that are not on the streams yet.
struct Launch {
  std::vector<std::vector<Part>> collectives;
};

/// A collective of ranks that are apart. Put on the streams once all parts are there.
struct Open {
  Kind kind;
  std::uint64_t index;   // among those of its ranks: all, or of one pair
  int from = 0, to = 0;  // of a pair
  std::vector<Part> parts;
  bool dead = false;  // one of its ranks has ended
};

/// How often a communicator returns ncclInProgress after a call that continues asynchronously.
inline constexpr int kPolls = 2;

}  // namespace braid::simt::nccl

/// A communicator. The library's lock (fake.cpp) guards all members but `users`.
struct ncclComm {
  std::shared_ptr<braid::simt::nccl::RankGroup> rank_group;
  int rank = 0;
  int polls = 0;                          // how many more times it returns ncclInProgress
  braid::simt::nccl::Result failure = 0;  // of its initialisation
  // shared by the communicators of a group; queued by the first that is polled often enough
  std::shared_ptr<braid::simt::nccl::Launch> launch;
  bool ready = false;         // all ranks are there
  std::uint64_t made_in = 0;  // the ncclGroup of its init
  int open = 0;  // collectives of ranks that are apart, which are not on the streams yet
  std::uint64_t collectives = 0;                                           // started so far
  std::map<std::pair<int, braid::simt::nccl::Kind>, std::uint64_t> pairs;  // by the other rank
  bool finalised = false, ended = false;  // ended: destroyed or aborted
  std::atomic<int> users{0};
};
