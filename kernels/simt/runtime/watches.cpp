#include <algorithm>
#include <cstring>

#include <braid/core/error.hpp>

#include "simt/runtime/state.hpp"

// The host's side of copies. Until the host has waited for a copy, the pinned bytes that it reads
// must not change, and the pinned bytes that it writes must not be used. The source is hashed when
// the copy is queued, and compared when the copy runs and when the host learns that it is complete.
// The destination is filled with 0xff, so that an early read does not find the right value by luck;
// the pattern must still be there when the copy runs. Kernels can access pinned memory too. While a
// kernel whose arguments point there has yet to run, the bytes are unknown and are left as they
// are. A kernel that reaches the memory through a pointer in memory is not detected; such memory is
// allocated as mapped and never watched.
namespace braid::simt::detail {
namespace {

constexpr unsigned char kPending = 0xff;

std::uint64_t hash(const char* p, std::size_t bytes) {
  constexpr std::uint64_t kPrime = 0x9e3779b97f4a7c15u;
  std::uint64_t h = bytes * kPrime;
  const auto mix = [&h](std::uint64_t word) {
    h = (h ^ word) * kPrime;
    h ^= h >> 29;
  };
  for (; bytes >= sizeof(std::uint64_t);
       p += sizeof(std::uint64_t), bytes -= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, sizeof word);
    mix(word);
  }
  std::uint64_t tail = 0;
  if (bytes) std::memcpy(&tail, p, bytes);
  mix(tail);
  return h;
}

bool overlap(const Watch& watch, const char* begin, std::size_t bytes) {
  return begin < watch.begin + watch.bytes && watch.begin < begin + bytes;
}

bool unchanged(const Watch& watch) {
  if (!watch.checked) return true;
  if (!watch.written) return hash(watch.begin, watch.bytes) == watch.hash;
  return std::all_of(watch.begin, watch.begin + watch.bytes,
                     [](char c) { return static_cast<unsigned char>(c) == kPending; });
}

// True if an argument of the kernel, or a member of one, points into the memory. Arguments are
// copied by value, so the closure contains all of them.
bool points_to(const Closure& kernel, const Allocation& allocation) {
  const char* const object = reinterpret_cast<const char*>(&kernel);
  const auto begin = reinterpret_cast<std::uintptr_t>(allocation.base);
  for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= kernel.bytes;
       at += sizeof(std::uintptr_t)) {
    std::uintptr_t word = 0;
    std::memcpy(&word, object + at, sizeof word);
    if (word - begin <= allocation.bytes) return true;
  }
  return false;
}

std::string changed_text(const Watch& watch) {
  return str("the host wrote to the pinned memory that ", describe(*watch.op),
             watch.written ? " writes" : " reads", ", before it had waited for that");
}

}  // namespace

void Runtime::watch(const OpPtr& op, const AllocationPtr& allocation, char* begin,
                    std::size_t bytes, bool written) {
  Watch watch{op, allocation, begin, bytes, written, !allocation->mapped, 0};
  for (const Watch& other : watches) {
    if (other.op->done || !overlap(other, begin, bytes)) continue;
    // The bytes change, or are read, before this copy runs: they are not known now.
    if (written || other.written) watch.checked = false;
  }
  for (const auto& stream : active)
    for (const OpPtr& pending_op : stream->queue)
      if (watch.checked && pending_op->body && points_to(*pending_op->body, *allocation))
        watch.checked = false;
  if (watch.checked && written) std::memset(begin, kPending, bytes);
  if (watch.checked && !written) watch.hash = hash(begin, bytes);
  watches.push_back(std::move(watch));
}

// Called when a copy runs, before its bytes are moved.
void Runtime::check_watches(const OpPtr& op) {
  std::vector<Watch*> mine;
  for (Watch& watch : watches)
    if (watch.op == op) mine.push_back(&watch);
  for (Watch* watch : mine) {
    if (!unchanged(*watch)) report_op(ReportKind::pinned_reuse, *op, {}, changed_text(*watch));
    if (!watch->written) {
      // From now on the bytes are known, whatever wrote them.
      watch->hash = hash(watch->begin, watch->bytes);
      watch->checked = !watch->allocation->mapped;
      continue;
    }
    watch->checked = false;  // the copy fills them now
    for (Watch& other : watches) {
      if (other.written || !other.op->done || !overlap(other, watch->begin, watch->bytes)) continue;
      if (!unchanged(other))
        report_op(ReportKind::pinned_reuse, *other.op, {}, changed_text(other));
      other.checked = false;
    }
  }
}

void Runtime::check_watches(const Op& op, const Closure& kernel) {
  for (Watch& watch : watches) {
    if (!watch.checked || watch.written || !watch.op->done || !ordered(*watch.op, op) ||
        !points_to(kernel, *watch.allocation))
      continue;
    if (!unchanged(watch)) report_op(ReportKind::pinned_reuse, *watch.op, {}, changed_text(watch));
    watch.checked = false;
  }
}

void Runtime::host_learned() {
  std::erase_if(watches, [this](const Watch& watch) {
    if (host.at(watch.op->slot) < watch.op->tick) return false;
    if (watch.op->done && !watch.written && !unchanged(watch))
      report_op(ReportKind::pinned_reuse, *watch.op, {}, changed_text(watch));
    return true;
  });
}

}  // namespace braid::simt::detail
