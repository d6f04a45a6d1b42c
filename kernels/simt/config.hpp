#pragma once
#include <cstddef>
#include <cstdint>

namespace braid::simt {

/// The order in which threads, ready threads and blocks run. Every order is legal on a GPU; a
/// kernel whose result depends on it is wrong. In the random order a load_acquire may also return a
/// value from before another block's store_release, unless something orders the two.
enum class Order : std::uint8_t { forward, reverse, random };

/// How the emulation runs. Read once from the environment. The setters are for tests and take
/// effect at the next launch.
struct Config {
  Order order = Order::forward;  ///< BRAID_SIMT_ORDER=forward|reverse|random[:seed]
  std::uint64_t seed = 1;        ///< of the random order
  /// BRAID_SIMT_DELAY=n: in the random order, a checked thread lets others run after n accesses on
  /// average, between barriers too; 0: only where it waits
  std::uint32_t delay = 0;
  /// BRAID_SIMT_WORKERS: host threads that share the blocks of a grid; 1 while checks are on
  int workers = 1;
  /// BRAID_SIMT_ASYNC=late|early: cp.async completes in the wait, or immediately
  bool late_async = true;
  /// BRAID_SIMT_MMA=nearest|cut: mma adds one product after the other, each sum rounded to nearest;
  /// or as tensor cores do, which cut off what does not fit
  bool mma_cuts = false;
  /// BRAID_SIMT_CHECK=0|1: the checker, in programs whose kernels are instrumented. Turn it on
  /// before the first launch: writes of unchecked kernels are not recorded.
  bool checks = true;
  /// bytes of shared memory that a block may use (as on an H100), if a kernel's attribute allows
  /// them: see kDynamicWithAttribute
  std::size_t shared_limit = 227 << 10;
  /// reads of the same memory, or atomics that change nothing, before a spin-wait is reported
  std::uint32_t spin_limit = 1 << 22;
  /// BRAID_SIMT_PROGRESS_LIMIT: a spin-wait is reported if a block makes this many accesses, or its
  /// threads pass barriers and warp operations this many times, and no thread returns meanwhile.
  /// The default takes seconds to reach. Without instrumented kernels only the passes, and atomics
  /// that change nothing, are counted.
  std::uint64_t progress_limit = std::uint64_t{1} << 27;
};

[[nodiscard]] Config config();
void set_config(const Config& config);
void set_order(Order order, std::uint64_t seed = 1);
void set_checks(bool on);
void set_workers(int workers);

}  // namespace braid::simt
