#pragma once
#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simt/location.hpp"
#include "simt/thread_order.hpp"

namespace braid::simt {

/// A cp.async that is in flight.
struct AsyncCopy {
  void* shared;
  const void* global;
  int size, bytes, group;
  Location where;
  char source[16] = {};  // the source bytes at the time of the issue
};

struct Thread;

/// The state of the barriers of some threads in the running block (barriers.hpp).
struct BlockSync {
  /// bar.sync and bar.arrive count whole warps.
  struct Named {
    int threads = 0;  // that it expects; 0: nobody has arrived
    int arrived = 0;
    std::uint32_t warps = 0;           // that have arrived
    std::array<unsigned, 32> lanes{};  // of each warp: those that have called
    std::array<Location, 32> where{};  // of each warp
    std::vector<Thread*> waiting;
    ThreadOrder::Clock clock;
  };
  struct Mbarrier {
    unsigned arrivals = 0;  // of a phase
    unsigned pending = 0;
    std::uint64_t phase = 0;
    std::vector<Thread*> waiting;
    std::vector<std::pair<unsigned, AsyncCopy>> copies;  // that land with the phase, and whose
    ThreadOrder::Clock arriving, completed;
  };
  std::array<Named, 16> named;
  std::unordered_map<const void*, Mbarrier> mbarriers;
  bool used = false;

  /// Before a block begins.
  void clear();
};

}  // namespace braid::simt
