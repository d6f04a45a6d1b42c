#pragma once
#include <atomic>

#include "simt/nccl/communicator.hpp"

namespace braid::simt::nccl {

/// What a group has begun and the streams have not got yet.
struct Launch {
  std::vector<std::vector<Part>> collectives;
};

/// How often a communicator answers ncclInProgress after a call that goes on behind it.
inline constexpr int kPolls = 2;

}  // namespace braid::simt::nccl

/// A communicator. The library's lock (stand_in.cpp) guards all but `users`.
struct ncclComm {
  std::shared_ptr<braid::simt::nccl::Clique> clique;
  int rank = 0;
  int polls = 0;                          // left to answer ncclInProgress
  braid::simt::nccl::Result failure = 0;  // of its initialisation
  // shared by the communicators of a group; done by the first that is asked often enough
  std::shared_ptr<braid::simt::nccl::Launch> launch;
  bool ready = false;                     // all ranks are there
  bool finalised = false, ended = false;  // ended: destroyed or aborted
  std::atomic<int> users{0};
};
