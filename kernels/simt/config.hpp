#pragma once
#include <cstddef>
#include <cstdint>

namespace braid::simt {

/// In which order threads, ready threads and blocks run. Every order is legal on a GPU; a kernel
/// whose result depends on it is wrong.
enum class Order : std::uint8_t { forward, reverse, random };

/// How the emulation runs. Read once from the environment; the setters are for tests and apply from
/// the next launch on.
struct Config {
  Order order = Order::forward;  ///< BRAID_SIMT_ORDER=forward|reverse|random[:seed]
  std::uint64_t seed = 1;        ///< of the random order
  /// BRAID_SIMT_WORKERS: host threads that share the blocks of a grid; 1 while checks are on
  int workers = 1;
  /// BRAID_SIMT_ASYNC=late|early: cp.async lands in the wait, or at once
  bool late_async = true;
  /// BRAID_SIMT_CHECK=0|1: the checker, in programs whose kernels are instrumented. Turn it on
  /// before the first use
  bool checks = true;
  /// bytes of shared memory a block may have (as on an H100)
  std::size_t shared_limit = 227 << 10;
  /// fruitless looks at the same memory before a spin-wait is reported
  std::uint32_t spin_limit = 1 << 22;
  /// BRAID_SIMT_PROGRESS_LIMIT: accesses of a block, and threads passing its barriers and warp
  /// operations, without a thread that returns, before a spin-wait is reported; seconds of work.
  /// Without instrumented kernels only the latter, and atomics that change nothing, are counted.
  std::uint64_t progress_limit = std::uint64_t{1} << 27;
};

[[nodiscard]] Config config();
void set_config(const Config& config);
void set_order(Order order, std::uint64_t seed = 1);
void set_checks(bool on);
void set_workers(int workers);

}  // namespace braid::simt
