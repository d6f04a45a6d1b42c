#pragma once
#include <cstdint>
#include <span>

#include "simt/error.hpp"

// Kernels whose blocks communicate through flags and counters in global memory, correct and with
// one mistake each.
namespace braid::simt_tests {

inline constexpr unsigned kFlagBlocks = 24, kFlagThreads = 64,
                          kFlagNumbers = kFlagBlocks * kFlagThreads;

struct FlagBuffers {
  const unsigned* in;    // kFlagNumbers
  unsigned* out;         // kFlagNumbers
  unsigned* parts;       // kFlagNumbers, uninitialised
  unsigned* flags;       // kFlagBlocks, zero at first
  std::uint64_t* words;  // kFlagBlocks, zero at first
  unsigned* counter;     // one, zero at first
  unsigned launch;       // how many launches were before this one, with the same buffers
};

enum class Mistake {
  none,
  // a scan with look-back
  tile_of_block_index,  // the tile's number is the block's, not a ticket
  kept_ticket,          // the counter is not reset for the next launch
  plain_flag,           // a flag is stored plainly after a fence
  unfenced_flag,        // a flag is stored with an atomic without a fence
  late_value,           // a value is written after its flag
  plain_read,           // a flag is read plainly
  read_once,            // a tile whose flag is not set is left out
  ignored_flag,         // a value is read whatever its flag says
  // the last block adds the parts
  no_fence,
  no_barrier_before,  // the ticket is taken before all threads have written
  no_barrier_after,   // threads ask for the ticket before it is there
  kept_counter,
  // a flag within a block
  never_set,
  // a turn is passed on by another lane than the one that has written
  no_warp_barrier,
  // plain writes of a word that others read with load_acquire
  plain_reset,
};

/// What the kernel computes.
enum class FlagResult { scan, column_sums, between_warps, in_turn, unchecked };

struct FlagKernel {
  const char* name;
  void (*kernel)(FlagBuffers b, Mistake mistake);
  FlagResult result;
  Mistake mistake = Mistake::none;
  simt::Finding finding{};
  const char* variable = "";
  const char* mark = "";  // at the end of the lines that a report may name
  enum When { always, not_forward, random_only } when = always;
};
/// The correct kernels.
[[nodiscard]] std::span<const FlagKernel> right_flags();
/// Kernels whose mistake is reported in the orders of `when`. In others the result is right.
[[nodiscard]] std::span<const FlagKernel> wrong_flags();
/// Kernels that compute something else than they should, in the orders of `when`, in the first or
/// in the second launch.
[[nodiscard]] std::span<const FlagKernel> wrong_results();
void run_flags(const FlagKernel& k, const FlagBuffers& b);

}  // namespace braid::simt_tests
