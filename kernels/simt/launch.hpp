#pragma once
#include "simt/mode.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>
#if SIMT_EMULATED
#include <memory>
#include <tuple>
#endif

#include "simt/location.hpp"
#include "simt/types.hpp"

namespace braid::simt {

/// A block has 48 KiB of shared memory, static arrays included, unless an attribute of the kernel
/// allows more dynamic memory. simt::launch sets it above 32 KiB of dynamic memory. So a kernel
/// with at most 32 KiB must not have more than 48 KiB of both. The emulation counts the arrays that
/// a block reaches; nvcc counts all arrays of a kernel.
inline constexpr std::size_t kSharedWithoutAttribute = 48 << 10, kDynamicWithAttribute = 32 << 10;

/// A kernel launch, without its arguments.
struct Launch {
  dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory
  const void* kernel = nullptr;
  const char* name = nullptr;  ///< nullptr: the name of `kernel` in the symbol table
  Location where;              ///< the call of simt::launch
};

/// A grid size with the source location of the call that it is an argument of.
struct GridAt {
  dim3 grid;
  Location where;
  template <class T>
    requires(std::is_convertible_v<T, dim3> && !std::is_integral_v<std::remove_cvref_t<T>>)
  GridAt(T&& g, Location w = Location::current())
      // NOLINT(google-explicit-constructor)
      : grid(static_cast<dim3>(std::forward<T>(g))), where(w) {}
  template <class T>
    requires std::is_integral_v<T>
  GridAt(T g, Location w = Location::current())
      : grid(static_cast<unsigned>(g)), where(w) {}  // NOLINT(google-explicit-constructor)
};

#if SIMT_EMULATED

/// A kernel with its arguments, copied by value as in a launch.
struct Closure {
  Closure() = default;
  Closure(const Closure&) = delete;
  Closure& operator=(const Closure&) = delete;
  virtual ~Closure() = default;
  /// Runs the kernel's body once, as the CUDA thread that threadIdx and blockIdx describe. Called
  /// by run_grid only.
  virtual void thread() const = 0;
  std::size_t bytes = 0;  ///< sizeof the whole object: kernels may read their arguments in it
};

namespace detail {

template <class... P> struct KernelClosure final : Closure {
  void (*kernel)(P...);
  std::tuple<std::decay_t<P>...> arguments;
  explicit KernelClosure(void (*k)(P...), std::decay_t<P>... a)
      : kernel(k), arguments(std::move(a)...) {
    bytes = sizeof(*this);
  }
  SIMT_NO_CHECK void thread() const override { call(std::index_sequence_for<P...>{}); }

 private:
  template <std::size_t... I> SIMT_NO_CHECK void call(std::index_sequence<I...>) const {
    kernel(std::get<I>(arguments)...);
  }
};

}  // namespace detail

/// Makes the closure of a launch. Converts the arguments to the kernel's parameter types.
template <class... P, class... A>
[[nodiscard]] std::unique_ptr<Closure> make_closure(void (*kernel)(P...), A&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A),
                "simt::launch: as many arguments as the kernel has parameters");
  static_assert((!std::is_reference_v<P> && ...),
                "simt::launch: a kernel takes its parameters by value");
  return std::make_unique<detail::KernelClosure<P...>>(
      kernel, static_cast<std::decay_t<P>>(std::forward<A>(arguments))...);
}

/// Runs all blocks of a grid to completion on the calling thread (with checks off, on
/// BRAID_SIMT_WORKERS threads). With checks on, a lock lets only one grid run at a time. Call
/// set_current_op (device_memory.hpp) before run_grid, with no other operation in between.
///
/// Throws  simt::Error (error.hpp) with the first finding, or for a grid that cannot be launched;
///         the grid is then abandoned
void run_grid(const Launch& launch, const Closure& closure);

/// Returns true if CUDA would accept the sizes: a block of at most 1024 threads with z at most 64,
/// a grid of at most 2^31-1, 65535, 65535, and shared memory within the limit.
[[nodiscard]] bool valid_launch(const Launch& launch) noexcept;

/// Runs a kernel synchronously on the calling thread, without streams. For tests of kernels. Throws
/// as run_grid does.
template <class... P, class... A>
void launch_now(void (*kernel)(P...), GridAt grid, dim3 block, std::size_t shared_bytes,
                A&&... arguments) {
  const std::unique_ptr<Closure> closure = make_closure(kernel, std::forward<A>(arguments)...);
  run_grid(Launch{grid.grid, block, shared_bytes, reinterpret_cast<const void*>(kernel), nullptr,
                  grid.where},
           *closure);
}

#endif

}  // namespace braid::simt
