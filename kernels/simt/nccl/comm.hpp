#pragma once
#include <atomic>

#include "simt/nccl/communicator.hpp"

namespace braid::simt::nccl {

/// Collectives of a group that are not on the streams yet.
struct Launch {
  std::vector<std::vector<Part>> collectives;
};

/// How often a communicator returns ncclInProgress after a call that continues asynchronously.
inline constexpr int kPolls = 2;

}  // namespace braid::simt::nccl

/// A communicator. The library's lock (stand_in.cpp) guards all members but `users`.
struct ncclComm {
  std::shared_ptr<braid::simt::nccl::Clique> clique;
  int rank = 0;
  int polls = 0;                          // how many more times it returns ncclInProgress
  braid::simt::nccl::Result failure = 0;  // of its initialisation
  // shared by the communicators of a group; queued by the first that is polled often enough
  std::shared_ptr<braid::simt::nccl::Launch> launch;
  bool ready = false;                     // all ranks are there
  bool finalised = false, ended = false;  // ended: destroyed or aborted
  std::atomic<int> users{0};
};
