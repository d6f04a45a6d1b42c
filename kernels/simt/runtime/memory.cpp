#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <braid/core/error.hpp>

#include "simt/error.hpp"
#include "simt/memory_map.hpp"
#include "simt/runtime/findings.hpp"
#include "simt/runtime/state.hpp"

namespace braid::simt::detail {
namespace {

// cudaMalloc's alignment, and a red zone, so that no two allocations are adjacent
constexpr std::size_t kAlign = 512, kRedZone = 512;
constexpr std::size_t kQuarantine = std::size_t{16} << 20, kLargestKept = std::size_t{1} << 20;
constexpr std::size_t kGone = 4096, kGoneBytes = std::size_t{1} << 40;
constexpr int kPoison = 0xff;

}  // namespace

Allocation::~Allocation() {
  if (mapping) mapping->discard();
  else if (!registered) std::free(base);
}

const Gone* Memory::find_gone(const void* p) const {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const auto next = gone.upper_bound(address);
  if (next == gone.begin()) return nullptr;
  const auto& [begin, block] = *std::prev(next);
  return address - begin < block.mapping->bytes() ? &block : nullptr;
}

AllocationPtr Memory::find_allocation(const void* p) const {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin()) return nullptr;
  const AllocationPtr& found_one = std::prev(next)->second;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(found_one->base) + found_one->bytes;
  return address < end + (found_one->registered ? 0 : kRedZone) ? found_one : nullptr;
}

cudaError_t Runtime::allocate(void** pointer, std::size_t bytes, Place place, StreamState* stream,
                              bool mapped, const char* call, Location where) {
  if (!pointer) return cudaErrorInvalidValue;
  *pointer = nullptr;
  const int device = stream ? stream->device : current_device;
  auto allocation = std::make_shared<Allocation>();
  {
    const Lock lock(mutex);
    if (const cudaError_t sticky = reports.sticky_of(device); sticky != cudaSuccess) return sticky;
    DeviceMemory& state = memory.of(device);
    if (bytes == 0) return cudaSuccess;
    if (bytes > std::numeric_limits<std::size_t>::max() / 2) return cudaErrorMemoryAllocation;
    const std::size_t charged = (bytes + kAlign - 1) / kAlign * kAlign;
    if (place == Place::device && charged > state.capacity - state.used)
      return cudaErrorMemoryAllocation;
    if (bytes > kLargestKept) {
      allocation->mapping = std::make_shared<Mapping>(charged + kRedZone);
      allocation->base = allocation->mapping->data();
    } else {
      allocation->base = static_cast<char*>(std::aligned_alloc(kAlign, charged + kRedZone));
    }
    if (!allocation->base) return cudaErrorMemoryAllocation;
    if (place == Place::device) {
      allocation->charged = charged;
      state.used += charged;
      state.peak = std::max(state.peak, state.used);
    }
  }
  allocation->bytes = bytes, allocation->place = place, allocation->device = device,
  allocation->mapped = mapped;
  allocation->async = stream != nullptr, allocation->call = call, allocation->where = where;
  try {
    register_memory(allocation->base, bytes,
                    place == Place::device ? MemoryKind::device : MemoryKind::pinned, device);
    std::memset(allocation->base, kPoison, bytes);
    const Lock lock(mutex);
    memory.allocations[reinterpret_cast<std::uintptr_t>(allocation->base)] = allocation;
    if (stream) {
      enqueue(*stream, OpKind::allocate, call, where, [this, allocation](Op& op) {
        {
          const Lock runs(mutex);
          touch(op.shared_from_this(), allocation, allocation->base, allocation->bytes,
                Access::allocate);
        }
        tell_allocated(op, allocation->base, allocation->bytes);
      });
    }
  } catch (...) {  // no host memory: undo the allocation
    {
      const Lock lock(mutex);
      memory.of(device).used -= allocation->charged;
      memory.allocations.erase(reinterpret_cast<std::uintptr_t>(allocation->base));
    }
    unregister_memory(allocation->base);
    throw;
  }
  *pointer = allocation->base;
  settle();
  return cudaSuccess;
}

AllocationPtr Runtime::take(void* pointer, Place place, bool registered, const char* call,
                            Location where) {
  const Lock lock(mutex);
  const AllocationPtr allocation = memory.find_allocation(pointer);
  const auto wrong = [&](ReportKind kind, Location other, const std::string& why) {
    reports.add(kind, allocation ? allocation->device : current_device, where, other,
                str(call, " at ", describe(where), ": ", why));
    return nullptr;
  };
  if (const Gone* block = allocation ? nullptr : memory.find_gone(pointer))
    return wrong(
        ReportKind::double_free, block->freed_where,
        str("memory from ", block->call, " at ", describe(block->where), " was freed already by ",
            block->free_call, " at ", describe(block->freed_where)));
  if (!allocation)
    return wrong(ReportKind::bad_free, {},
                 "expected the begin of an allocation, got a pointer that is none");
  const std::string made =
      str("memory from ", allocation->call, " at ", describe(allocation->where));
  if (allocation->freed)
    return wrong(ReportKind::double_free, allocation->freed_where,
                 str(made, " was freed already by ", allocation->free_call, " at ",
                     describe(allocation->freed_where)));
  if (allocation->base != pointer)
    return wrong(ReportKind::bad_free, allocation->where,
                 "expected the begin of an allocation, got a pointer into " + made);
  if (allocation->place != place || allocation->registered != registered)
    return wrong(ReportKind::bad_free, allocation->where,
                 "expected memory of the matching kind, got " + made);
  allocation->freed = true, allocation->free_call = call, allocation->freed_where = where;
  if (place == Place::device) memory.of(allocation->device).used -= allocation->charged;
  return allocation;
}

void Runtime::free_now(const AllocationPtr& allocation, const char* call, Location where,
                       bool check) {
  const Lock runs(baton);
  OpPtr op;
  bool fine = check;
  {
    const Lock lock(mutex);
    op = streams.host_op(call, allocation->device, where);
    if (reports.sticky_of(allocation->device) != cudaSuccess) fine = false;
    if (fine) (void)touch(op, allocation, allocation->base, allocation->bytes, Access::release);
  }
  const ReportKind kind =
      allocation->place == Place::device ? ReportKind::use_after_free : ReportKind::pinned_free;
  if (fine) ask_release(*op, *allocation, kind);
  retire(allocation);
}

bool Memory::keeps(const Allocation& allocation) noexcept {
  return !allocation.registered && allocation.bytes <= kLargestKept;
}

std::vector<AllocationPtr> Memory::retire(const AllocationPtr& allocation) {
  std::vector<AllocationPtr> leaving;
  if (keeps(*allocation)) {
    quarantine.push_back(allocation);
    quarantine_bytes += allocation->bytes;
  } else {
    leaving.push_back(allocation);
  }
  while (quarantine_bytes > kQuarantine) {
    leaving.push_back(quarantine.front());
    quarantine_bytes -= quarantine.front()->bytes;
    quarantine.pop_front();
  }
  for (const AllocationPtr& left : leaving) {
    left->unregistered = true;
    const auto begin = reinterpret_cast<std::uintptr_t>(left->base);
    allocations.erase(begin);
    if (!left->mapping) continue;
    gone[begin] = Gone{left->mapping,   left->bytes, left->device,     left->call,
                       left->free_call, left->where, left->freed_where};
    gone_order.push_back(begin);
    gone_bytes += left->mapping->bytes();
  }
  while (gone.size() > kGone || gone_bytes > kGoneBytes) {
    const auto oldest = gone.find(gone_order.front());
    gone_bytes -= oldest->second.mapping->bytes();
    gone.erase(oldest);
    gone_order.pop_front();
  }
  return leaving;
}

void Memory::clear() {
  allocations.clear(), quarantine.clear(), watches.clear();
  quarantine_bytes = 0, gone.clear(), gone_order.clear(), gone_bytes = 0;
  for (DeviceMemory& device : devices) device.used = device.peak = 0, device.release_threshold = 0;
}

void Runtime::retire(const AllocationPtr& allocation) {
  if (!allocation->registered && !allocation->mapping)
    std::memset(allocation->base, kPoison, allocation->bytes);
  if (Memory::keeps(*allocation)) annotate_freed(allocation->base, allocation->bytes);
  std::vector<AllocationPtr> leaving;
  {
    const Lock lock(mutex);
    leaving = memory.retire(allocation);
  }
  for (const AllocationPtr& left : leaving) unregister_memory(left->base);
}

bool Runtime::touch(const OpPtr& op, const AllocationPtr& allocation, const void* p,
                    std::size_t bytes, Access access) {
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  const std::optional<Conflict> conflict =
      allocation->history.touch(op, begin, begin + bytes, access);
  if (!conflict) return true;
  const bool again = !reports.reported.emplace(conflict->earlier->id, op->id).second;
  if (again) return false;
  const std::size_t offset =
      static_cast<std::size_t>(static_cast<const char*>(p) - allocation->base);
  static constexpr const char* kVerbs[] = {" reads ", " writes ", " gives out ", " frees ",
                                           " frees "};
  reports.add_op(
      conflict->kind, *op, conflict->earlier->where,
      str(describe(*op), kVerbs[static_cast<std::size_t>(access)], bytes, " bytes at offset ",
          offset, " of memory from ", allocation->call, " (", describe(allocation->where), ", ",
          allocation->bytes, " bytes), which ", conflict->text));
  return false;
}

void Runtime::tell_allocated(const Op& op, void* p, std::size_t bytes) {
  annotate_allocated(p, bytes);
  constexpr ReportKind kind = ReportKind::use_before_alloc;
  ask_checker(op, [&] { check_block(p, bytes); }, &kind);
  annotate_allocated(p, bytes);  // the check counts as a write: mark it as uninitialised again
}

void Runtime::ask_release(const Op& op, const Allocation& allocation, ReportKind kind) {
  // even if a sub-allocator has freed some of its blocks
  annotate_allocated(allocation.base, allocation.bytes);
  ask_checker(
      op, [&] { check_touched(allocation.base, allocation.bytes, allocation.bytes); }, &kind);
}

// Cells of bytes that nothing has accessed occupy no physical memory. mincore tells which pages do.
void check_touched(char* p, std::size_t bytes, std::size_t most) {
  const Region* const region = MemoryMap::instance().find(p);
  if (!region) return;
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t cells = reinterpret_cast<std::uintptr_t>(region->cells);
  const std::size_t offset = static_cast<std::size_t>(p - region->begin),
                    per_page = page / sizeof(Cell) * 4;
  const std::size_t begin = (cells + offset / 4 * sizeof(Cell)) / page,
                    end = (cells + (offset + bytes + 3) / 4 * sizeof(Cell) + page - 1) / page;
  std::vector<unsigned char> resident(end - begin);
  if (mincore(reinterpret_cast<void*>(begin * page), resident.size() * page, resident.data()) != 0)
    return check_range(p, bytes, true);
  const auto touched = static_cast<std::size_t>(std::count_if(
      resident.begin(), resident.end(), [](unsigned char r) { return (r & 1) != 0; }));
  const std::size_t step =
      std::max<std::size_t>(1, touched * per_page / std::max<std::size_t>(1, most));
  std::size_t seen = 0;
  for (std::size_t i = 0; i < resident.size(); ++i) {
    if (!(resident[i] & 1) || seen++ % step != 0) continue;
    // Cells start at the beginning of a page, so that a page contains the cells of whole words.
    const std::size_t at = ((begin + i) * page - cells) / sizeof(Cell) * 4;
    const std::size_t from = std::max(at, offset), to = std::min(at + per_page, offset + bytes);
    if (from < to) check_range(region->begin + from, to - from, true);
  }
}

void check_block(void* p, std::size_t bytes) {
  check_range(p, std::min(bytes, kCheckedHead), true);
  if (bytes > kCheckedHead)
    check_touched(static_cast<char*>(p) + kCheckedHead, bytes - kCheckedHead, kCheckedHead);
}

bool Runtime::ask_checker(const Op& op, const std::function<void()>& question,
                          const ReportKind* kind) {
  try {
    set_current_op(op.id, op.device);
    question();
    return true;
  } catch (const Error& e) {
    const Lock lock(mutex);
    reports.add_op(kind ? *kind : kind_of(e.finding()), op, {}, str(describe(op), ": ", e.what()),
                   code_of(e.finding()));
    return false;
  }
}

}  // namespace braid::simt::detail
