// Kernels whose blocks communicate through flags and counters. The lines that a report of a mistake
// may name end in `// here: <mark>`.
#include "flag_kernels.hpp"

#include "run_kernel.hpp"

namespace braid::simt_tests::flags {

/// Returns the number of this block's tile: one more than that of the block that began before it.
/// All threads call it.
__device__ unsigned take_tile(const FlagBuffers& b, Mistake mistake) {
  SIMT_SHARED(unsigned, tile, [1]);
  if (threadIdx.x == 0)
    tile[0] = mistake == Mistake::tile_of_block_index ? blockIdx.x
              : mistake == Mistake::kept_ticket       ? atomicAdd(b.counter, 1u)
                                                      : atomicInc(b.counter, gridDim.x - 1);
  __syncthreads();
  return tile[0];
}

/// The inclusive sums of the block's values.
__device__ unsigned scan_block(unsigned x) {
  SIMT_SHARED(unsigned, s, [kFlagThreads]);
  const unsigned t = threadIdx.x;
  s[t] = x;
  __syncthreads();
  for (unsigned step = 1; step < kFlagThreads; step *= 2) {
    const unsigned left = t >= step ? s[t - step] : 0;
    __syncthreads();
    s[t] += left;
    __syncthreads();
  }
  return s[t];
}

__device__ void set_flag(unsigned* flag, unsigned value, Mistake mistake) {
  if (mistake == Mistake::plain_flag) {
    __threadfence();
    *flag = value;  // here: flag
  } else if (mistake == Mistake::unfenced_flag) {
    atomicExch(flag, value);
  } else {
    simt::store_release(flag, value);  // here: flag
  }
}

__device__ unsigned read_flag(const unsigned* flag, Mistake mistake) {
  if (mistake == Mistake::plain_read)
    return *static_cast<const volatile unsigned*>(flag);  // here: flag
  return simt::load_acquire(flag);                        // here: flag
}

// A scan in one pass with look-back (Merrill and Garland 2016). A tile's flag is 2 launch + 1 when
// its sum is in `parts`, and 2 launch + 2 when the sum up to its end is in `parts` too.
__global__ void scan(FlagBuffers b, Mistake mistake) {
  SIMT_SHARED(unsigned, before, [1]);
  const unsigned t = threadIdx.x, tile = take_tile(b, mistake), i = tile * kFlagThreads + t,
                 known = 2 * b.launch + 1, complete = known + 1;
  const unsigned sum = scan_block(b.in[i]);  // here: input
  unsigned *const sums = b.parts, *const ends = b.parts + kFlagBlocks;
  if (t == kFlagThreads - 1) {
    sums[tile] = sum;
    set_flag(b.flags + tile, known, mistake);
    unsigned left = 0;
    for (unsigned k = tile; k-- > 0;) {
      unsigned flag = read_flag(b.flags + k, mistake);
      if (mistake != Mistake::read_once && mistake != Mistake::ignored_flag)
        while (flag < known) flag = read_flag(b.flags + k, mistake);
      if (flag == complete || mistake == Mistake::ignored_flag) {
        left += ends[k];  // here: value
        // so is tile 0, as that tile or one before has observed, and it stays so
        if (mistake == Mistake::none && simt::load_acquire(b.flags) != complete) left += 1;
        break;
      }
      if (flag == known) left += sums[k];
    }
    if (mistake != Mistake::late_value) ends[tile] = left + sum;  // here: value
    set_flag(b.flags + tile, complete, mistake);
    if (mistake == Mistake::late_value) ends[tile] = left + sum;  // here: value
    before[0] = left;
  }
  __syncthreads();
  b.out[i] = before[0] + sum;
}

// As `scan`, but the state of a tile and its value are one word, and a warp looks at 32 tiles at
// once. The low half of a word is the state.
__global__ void scan_by_warp(FlagBuffers b, Mistake) {
  SIMT_SHARED(unsigned, before, [1]);
  const unsigned t = threadIdx.x, lane = t % 32, tile = take_tile(b, Mistake::none),
                 i = tile * kFlagThreads + t, known = 2 * b.launch + 1, complete = known + 1;
  const unsigned sum = scan_block(b.in[i]);
  const auto word = [](unsigned value, unsigned state) {
    return static_cast<std::uint64_t>(value) << 32 | state;
  };
  if (t >= kFlagThreads - 32) {
    const unsigned all = __shfl_sync(~0u, sum, 31);
    if (lane == 31) simt::store_release(b.words + tile, word(all, known));
    unsigned left = 0;
    for (int end = static_cast<int>(tile); end > 0; end -= 32) {
      const int k = end - 1 - static_cast<int>(lane);
      std::uint64_t seen;
      do seen = k < 0 ? word(0, complete) : simt::load_acquire(b.words + k);
      while (__any_sync(~0u, static_cast<unsigned>(seen) < known));
      const unsigned ends = __ballot_sync(~0u, static_cast<unsigned>(seen) == complete);
      const unsigned last =
          ends == 0 ? 31 : static_cast<unsigned>(__ffs(static_cast<int>(ends))) - 1;
      unsigned value = lane <= last ? static_cast<unsigned>(seen >> 32) : 0;
      for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
      left += value;
      if (ends != 0) break;
    }
    if (lane == 31) {
      simt::store_release(b.words + tile, word(left + all, complete));
      before[0] = left;
    }
  }
  __syncthreads();
  b.out[i] = before[0] + sum;
}

// A word for each lane of a warp, which all but the last tile wait for.
__global__ void scan_tile_of_block_index(FlagBuffers b, Mistake mistake) {
  const unsigned lane = threadIdx.x % 32,
                 tile = mistake == Mistake::none ? take_tile(b, mistake) : blockIdx.x;
  if (threadIdx.x >= 32) return;
  const unsigned set = b.launch + 1;
  while (__any_sync(~0u, lane < tile && lane < kFlagBlocks &&
                             simt::load_acquire(b.flags + lane) != set))  // here: tile_by_warp
    continue;
  if (lane == 0) simt::store_release(b.flags + tile, set);
}

// Every block writes a part. The block that comes last adds them.
__global__ void last_block(FlagBuffers b, Mistake mistake) {
  SIMT_SHARED(unsigned, last, [1]);
  const unsigned t = threadIdx.x, i = blockIdx.x * kFlagThreads + t;
  if (t == 0) last[0] = 0;
  __syncthreads();
  b.parts[i] = b.in[i];  // here: part
  if (mistake != Mistake::no_barrier_before) __syncthreads();
  if (t == 0) {
    if (mistake != Mistake::no_fence) __threadfence();
    const unsigned ticket = mistake == Mistake::kept_counter ? atomicAdd(b.counter, 1u)
                                                             : atomicInc(b.counter, gridDim.x - 1);
    __threadfence();
    last[0] = ticket == gridDim.x - 1 ? 1 : 0;  // here: last
  }
  if (mistake != Mistake::no_barrier_after) __syncthreads();
  if (last[0] == 0) return;  // here: last
  unsigned sum = 0;
  for (unsigned k = 0; k < gridDim.x; ++k) sum += b.parts[k * kFlagThreads + t];  // here: part
  b.out[t] = sum + b.launch;
}

// A thread waits for a thread of another warp.
__global__ void between_warps(FlagBuffers b, Mistake mistake) {
  const unsigned t = threadIdx.x, k = blockIdx.x, set = b.launch + 1;
  if (t == 33) b.parts[kFlagBlocks + k] = b.in[k];
  __syncwarp();
  if (t == 32) {
    if (mistake != Mistake::late_value) b.parts[k] = b.in[k];  // here: between_warps
    if (mistake != Mistake::never_set) simt::store_release(b.flags + k, set);
    if (mistake == Mistake::late_value) b.parts[k] = b.in[k];  // here: between_warps
  }
  if (t != 0) return;
  while (simt::load_acquire(b.flags + k) != set) continue;      // here: waits
  b.out[k] = b.parts[k] + b.parts[kFlagBlocks + k] + b.launch;  // here: between_warps
}

// The tiles add to one number in the order of their numbers. One word is the turn of all.
__global__ void in_turn(FlagBuffers b, Mistake mistake) {
  const unsigned tile = take_tile(b, Mistake::none), lane = threadIdx.x;
  if (lane >= 32) return;
  if (lane == 0)
    while (simt::load_acquire(b.flags) != tile) continue;
  __syncwarp();
  if (lane == 31) b.out[0] = tile == 0 ? b.launch : 3 * b.out[0] + b.in[tile];  // here: turn
  if (mistake != Mistake::no_warp_barrier) __syncwarp();
  if (lane != 0) return;
  if (tile < gridDim.x - 1) simt::store_release(b.flags, tile + 1);
  else b.flags[0] = 0;  // every other tile has had its turn
}

// The last block resets a word that every block has read.
__global__ void reset(FlagBuffers b, Mistake mistake) {
  if (threadIdx.x != 0) return;
  b.out[blockIdx.x] = simt::load_acquire(b.flags);  // here: reset
  if (mistake == Mistake::none) __threadfence();
  if (atomicInc(b.counter, gridDim.x - 1) == gridDim.x - 1) b.flags[0] = 5;  // here: reset
}

__global__ void reset_beside(FlagBuffers b, Mistake mistake) {
  const unsigned t = threadIdx.x;
  if (blockIdx.x != 0) return;
  if (t == 40) b.out[0] = simt::load_acquire(b.flags);  // here: reset_beside
  if (mistake == Mistake::none) __syncthreads();
  if (t == 2) b.flags[0] = 5;  // here: reset_beside
}

__global__ void flag_in_shared(FlagBuffers b, Mistake mistake) {
  SIMT_SHARED(unsigned, flag, [kFlagThreads]);
  unsigned* const to = mistake == Mistake::none ? b.flags + blockIdx.x : &flag[threadIdx.x];
  if (threadIdx.x == 0) simt::store_release(to, 1);  // here: shared
}

}  // namespace braid::simt_tests::flags

namespace braid::simt_tests {

namespace {
constexpr const char *kFlags = "global allocation of 96 bytes",
                     *kParts = "global allocation of 6144 bytes", *kOut = kParts;
}

std::span<const FlagKernel> right_flags() {
  using namespace flags;
  using enum FlagResult;
  static constexpr FlagKernel list[] = {
      {"scan", flags::scan, FlagResult::scan},
      {"scan_by_warp", scan_by_warp, FlagResult::scan},
      {"scan_tile_of_block_index", scan_tile_of_block_index, unchecked},
      {"last_block", last_block, column_sums},
      {"between_warps", flags::between_warps, FlagResult::between_warps},
      {"in_turn", flags::in_turn, FlagResult::in_turn},
      {"reset", reset, unchecked},
      {"reset_beside", reset_beside, unchecked},
      {"flag_in_shared", flag_in_shared, unchecked},
  };
  return list;
}

std::span<const FlagKernel> wrong_flags() {
  using namespace flags;
  using enum FlagResult;
  using enum Mistake;
  using enum simt::Finding;
  constexpr auto not_forward = FlagKernel::not_forward, random_only = FlagKernel::random_only;
  static constexpr FlagKernel list[] = {
      {"scan", flags::scan, FlagResult::scan, tile_of_block_index, spin_wait, "", "flag",
       not_forward},
      {"scan_tile_of_block_index", scan_tile_of_block_index, unchecked, tile_of_block_index,
       spin_wait, "", "tile_by_warp", not_forward},
      {"scan", flags::scan, FlagResult::scan, kept_ticket, out_of_bounds, kParts, "input"},
      {"scan", flags::scan, FlagResult::scan, plain_flag, race, kFlags, "flag"},
      {"scan", flags::scan, FlagResult::scan, unfenced_flag, race, kParts, "value"},
      {"scan", flags::scan, FlagResult::scan, late_value, race, kParts, "value"},
      {"scan", flags::scan, FlagResult::scan, plain_read, race, kFlags, "flag"},
      {"scan", flags::scan, FlagResult::scan, ignored_flag, race, kParts, "value", random_only},
      {"last_block", last_block, column_sums, no_fence, race, kParts, "part"},
      {"last_block", last_block, column_sums, no_barrier_before, race, kParts, "part"},
      {"last_block", last_block, column_sums, no_barrier_after, race, "last", "last"},
      {"between_warps", flags::between_warps, FlagResult::between_warps, late_value, race, kParts,
       "between_warps"},
      {"between_warps", flags::between_warps, FlagResult::between_warps, never_set, spin_wait, "",
       "waits"},
      {"in_turn", flags::in_turn, FlagResult::in_turn, no_warp_barrier, race, kOut, "turn"},
      {"reset", reset, unchecked, plain_reset, race, kFlags, "reset"},
      {"reset_beside", reset_beside, unchecked, plain_reset, race, kFlags, "reset_beside"},
      {"flag_in_shared", flag_in_shared, unchecked, plain_flag, invalid_address, "flag", "shared"},
  };
  return list;
}

std::span<const FlagKernel> wrong_results() {
  using namespace flags;
  using enum Mistake;
  static constexpr FlagKernel list[] = {
      {"scan", flags::scan, FlagResult::scan, read_once, {}, "", "", FlagKernel::random_only},
      {"last_block", last_block, FlagResult::column_sums, kept_counter},
  };
  return list;
}

void run_flags(const FlagKernel& k, const FlagBuffers& b) {
  run(k.kernel, kFlagBlocks, kFlagThreads, 0, b, k.mistake);
}

}  // namespace braid::simt_tests
