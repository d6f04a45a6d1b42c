// The functions that kernels call: thin wrappers that forward from device.hpp, atomic.hpp and
// ptx.hpp to the scheduler and the checker.
#include "simt/device.hpp"

#include <bit>
#include <cstring>

#include "simt/checker.hpp"
#include "simt/scheduler.hpp"

namespace braid::simt::detail {

namespace {

Scheduler& here(const char* what) {
  Scheduler* s = Scheduler::running();
  if (!s) throw braid::Error(str(what, ": expected a call from a kernel, got one from the host"));
  return *s;
}

}  // namespace

void* shared_array(const SharedArray* array) { return here("SIMT_SHARED").shared_array(array); }
void* dynamic_shared() { return here("SIMT_DYN_SHARED").dynamic_shared(); }
int block_vote(int predicate, Vote vote, Location where) {
  return here("__syncthreads").vote(predicate, vote, where);
}
int lane_id() { return here("lane").current().index & 31; }
// CUDA does not define which lanes run together. The calling lane alone is a legal result, and the
// one that reveals wrong use.
unsigned active_mask() { return 1u << lane_id(); }

void warp_barrier(unsigned mask, Location where) {
  Scheduler& s = here("__syncwarp");
  s.leave(s.meet(mask, WarpOp::sync, 0, nullptr, 0, where));
}

std::uint64_t warp_shuffle(unsigned mask, std::uint64_t value, int source, Source kind,
                           Location where) {
  Scheduler& s = here("shuffle");
  WarpGroup& group = s.meet(mask, WarpOp::shuffle, 0, &value, sizeof value, where);
  if (kind != Source::own) {
    value = ~std::uint64_t{0};  // NaN, for a lane that takes no part
    const bool exists = source >= 0 && source < 32;
    if (exists && (group.mask >> source & 1)) std::memcpy(&value, group.in[source], sizeof value);
    else if (kind == Source::exact && exists && (s.lanes_of_warp() >> source & 1))
      s.fail(group.named >> source & 1 ? Finding::divergent_warp : Finding::wrong_mask, where, [&] {
        if (group.named >> source & 1)
          return str("shuffle with mask ", hex(group.named), " takes the value of lane ", source,
                     ", which has returned,");
        return str("shuffle takes the value of lane ", source, ", which is not in its mask ",
                   hex(group.named), ",");
      });
  }
  s.leave(group);
  return value;
}

unsigned warp_ballot(unsigned mask, bool predicate, Location where) {
  Scheduler& s = here("vote");
  const std::uint32_t mine = predicate ? 1 : 0;
  WarpGroup& group = s.meet(mask, WarpOp::ballot, 0, &mine, sizeof mine, where);
  unsigned result = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (group.mask >> i & 1) result |= group.in[i][0] << i;
  s.leave(group);
  return result;
}

unsigned warp_match(unsigned mask, std::uint64_t value, Location where) {
  Scheduler& s = here("match");
  WarpGroup& group = s.meet(mask, WarpOp::match, 0, &value, sizeof value, where);
  unsigned result = 0;
  for (unsigned i = 0; i < 32; ++i)
    if ((group.mask >> i & 1) && std::memcmp(group.in[i], &value, sizeof value) == 0)
      result |= 1u << i;
  s.leave(group);
  return result;
}

void fence(bool whole_device) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  Scheduler& s = here("__threadfence");
  if (whole_device && s.checker()) s.checker()->fence();
}

void atomic_access(const void* p, std::size_t bytes, Location where) {
  Scheduler* s = Scheduler::running();
  if (s && s->checker()) s->checker()->access(p, bytes, Access::atomic, site_of(where));
}

void atomic_in_vain(const void* p, Location where) {
  if (Scheduler* s = Scheduler::running()) s->in_vain(p, where);
}

std::uint64_t load_acquire(const void* p, std::size_t bytes, Location where) {
  Scheduler& s = here("load_acquire");
  std::uint64_t value;
  if (s.checker()) value = s.checker()->load_acquire(p, bytes, site_of(where));
  else if (bytes == 8)
    value = __atomic_load_n(static_cast<const std::uint64_t*>(p), __ATOMIC_ACQUIRE);
  else value = __atomic_load_n(static_cast<const std::uint32_t*>(p), __ATOMIC_ACQUIRE);
  s.polled(p, value, where);
  return value;
}

void store_release(void* p, std::size_t bytes, std::uint64_t value, Location where) {
  Scheduler& s = here("store_release");
  if (s.checker()) s.checker()->store_release(p, bytes, site_of(where));
  if (bytes == 8) __atomic_store_n(static_cast<std::uint64_t*>(p), value, __ATOMIC_RELEASE);
  else
    __atomic_store_n(static_cast<std::uint32_t*>(p), static_cast<std::uint32_t>(value),
                     __ATOMIC_RELEASE);
}

void touch(const void* p, std::size_t bytes, bool write, Location where) {
  Scheduler* s = Scheduler::running();
  if (s && s->checker())
    s->checker()->access(p, bytes, write ? Access::write : Access::read, site_of(where));
}

void touch_bytes(const void* p, std::size_t bytes, bool write, Location where) {
  Scheduler* s = Scheduler::running();
  if (s && s->checker())
    s->checker()->access(p, bytes, write ? Access::write : Access::read, site_of(where), false);
}

void touch_constant(const void* p, std::size_t bytes, Location where) {
  Scheduler* s = Scheduler::running();
  if (s && s->checker()) s->checker()->constant(p, bytes, site_of(where));
}

void async_copy(void* shared, const void* global, int size, int bytes, Location where) {
  here("cp.async").async_copy({shared, global, size, bytes, 0, where});
}
void async_commit() { ++here("cp.async").current().groups; }
void async_wait(int newest) { here("cp.async").async_wait(newest); }
void async_wait_all() { here("cp.async").async_wait_all(); }

void named_barrier(int id, int threads, bool waits, Location where) {
  here("named_barrier").named_barrier(id, threads, waits, where);
}
void mbarrier_init(std::uint64_t* barrier, unsigned arrivals, Location where) {
  here("mbarrier").mbarrier_init(barrier, arrivals, where);
}
void mbarrier_arrive(std::uint64_t* barrier, bool copies, Location where) {
  here("mbarrier").mbarrier_arrive(barrier, copies, where);
}
void mbarrier_wait(std::uint64_t* barrier, unsigned parity, Location where) {
  here("mbarrier").mbarrier_wait(barrier, parity, where);
}

void load_matrices(std::uint32_t* r, int count, bool transposed, const void* row, Location where) {
  Scheduler& s = here("ldmatrix");
  const int lane = s.current().index & 31;
  if (lane < 8 * count) {
    if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0)
      s.fail(Finding::misaligned, where,
             "ldmatrix: expected a row address that is a multiple of 16, got another");
    if (!s.arena().holds(row))
      s.fail(Finding::invalid_address, where,
             "ldmatrix: expected rows in shared memory, got another address");
    if (s.checker()) s.checker()->access(row, 16, Access::read, site_of(where));
  }
  WarpGroup& group =
      s.meet(~0u, WarpOp::ldmatrix, transposed ? -count : count, &row, sizeof row, where);
  if (group.mask != ~0u)
    s.fail(Finding::divergent_warp, where, "ldmatrix: expected a warp of 32 lanes");
  for (int i = 0; i < count; ++i) r[i] = group.out[lane][i];
  s.leave(group);
}

void multiply(Mma kind, float* d, const std::uint32_t* a, const std::uint32_t* b, const float* c,
              Location where) {
  Scheduler& s = here("mma");
  std::uint32_t in[10];
  std::memcpy(in, a, 16);
  std::memcpy(in + 4, b, 8);
  std::memcpy(in + 6, c, 16);
  WarpGroup& group = s.meet(~0u, WarpOp::mma, static_cast<int>(kind), in, sizeof in, where);
  if (group.mask != ~0u) s.fail(Finding::divergent_warp, where, "mma: expected a warp of 32 lanes");
  std::memcpy(d, group.out[s.current().index & 31], 16);
  s.leave(group);
}

}  // namespace braid::simt::detail
