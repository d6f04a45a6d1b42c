// What a collective does on the streams of its ranks. First each rank copies its input. When the
// inputs that a rank needs are there, it writes its result. Ranks wait for each other only between
// these two steps. A rank that needs no other rank (the root of a broadcast, the non-roots of a
// reduce) does not wait.
#include <cstring>

#include <braid/core/error.hpp>

#include "simt/half.hpp"
#include "simt/nccl/communicator.hpp"
#include "simt/runtime/state.hpp"

namespace braid::simt::nccl {
namespace {

using detail::Access;
using detail::AllocationPtr;
using detail::Op;
using detail::OpKind;
using detail::OpPtr;
using detail::Place;
using detail::Runtime;

using Bytes = std::vector<char>;
using BytesPtr = std::shared_ptr<Bytes>;

bool needs(const Part& part, int other) {
  if (other == part.rank) return true;
  switch (part.kind) {
    case Kind::broadcast: return other == part.root;
    case Kind::reduce: return part.rank == part.root;
    case Kind::send: return false;
    case Kind::recv: return other == part.root;
    case Kind::all_reduce:
    case Kind::all_gather:
    case Kind::reduce_scatter: break;
  }
  return true;
}

/// a + b, a * b, the larger or the smaller, in the type's own arithmetic. As NCCL's, the last two
/// lose a NaN.
template <class T> T combine(T a, T b, int op) {
  switch (op) {
    case 1: return static_cast<T>(a * b);
    case 2: return a > b ? a : b;
    case 3: return a < b ? a : b;
    default: return static_cast<T>(a + b);
  }
}

/// x[first] + … + x[first + count - 1] of element i, or another op.
template <class T>
T add(const std::vector<const T*>& x, std::size_t i, std::size_t first, std::size_t count,
      Sum order, int op) {
  if (count == 1) return x[first][i];
  std::size_t left = count - 1;  // ring: all but the last, then the last
  if (order == Sum::tree)
    for (left = 1; 2 * left < count;) left *= 2;
  return combine(add(x, i, first, left, order, op),
                 add(x, i, first + left, count - left, order, op), op);
}

template <class T>
void sum(const std::vector<BytesPtr>& from, std::size_t begin, std::size_t count, Bytes& out,
         Sum order, int op) {
  std::vector<const T*> x;
  for (const BytesPtr& bytes : from) x.push_back(reinterpret_cast<const T*>(bytes->data()) + begin);
  for (std::size_t i = 0; i < count; ++i)
    reinterpret_cast<T*>(out.data())[i] = add(x, i, 0, x.size(), order, op);
}

/// Computes what the rank receives from what all ranks have sent.
Bytes result_of(const Part& part, const std::vector<BytesPtr>& sent, Sum order) {
  const std::size_t size = bytes_of(part.type);
  Bytes out(part.receives() * size);
  if (part.kind == Kind::broadcast || part.kind == Kind::recv)
    return *sent[static_cast<std::size_t>(part.root)];
  if (part.kind == Kind::all_gather) {
    for (std::size_t rank = 0; rank < sent.size(); ++rank)
      std::memcpy(out.data() + rank * part.count * size, sent[rank]->data(), part.count * size);
    return out;
  }
  const std::size_t begin =
      part.kind == Kind::reduce_scatter ? static_cast<std::size_t>(part.rank) * part.count : 0;
  switch (part.type) {
    case 1: sum<std::uint8_t>(sent, begin, part.count, out, order, part.op); break;
    case 2: sum<std::int32_t>(sent, begin, part.count, out, order, part.op); break;
    case 4: sum<std::int64_t>(sent, begin, part.count, out, order, part.op); break;
    case 6: sum<half_t>(sent, begin, part.count, out, order, part.op); break;
    case 7: sum<float>(sent, begin, part.count, out, order, part.op); break;
    case 8: sum<double>(sent, begin, part.count, out, order, part.op); break;
    case 9: sum<bfloat16_t>(sent, begin, part.count, out, order, part.op); break;
    default: throw InternalError(str("nccl: expected a type that was checked, got ", part.type));
  }
  return out;
}

/// Reports an access of an operation to [p, p + bytes) on its device to both checkers. Requires
/// that the runtime's lock is not held.
void touch(Runtime& r, Op& op, const AllocationPtr& allocation, char* p, std::size_t bytes,
           Access access) {
  bool fine = false;
  {
    const Runtime::Lock lock(r.mutex);
    fine = r.touch(op.shared_from_this(), allocation, p, bytes, access);
  }
  if (fine) r.ask_checker(op, [&] { check_range(p, bytes, access == Access::write); });
}

/// Returns the device's allocation that contains [p, p + bytes), or null. Under the lock.
AllocationPtr find(Runtime& r, const void* p, std::size_t bytes, int device) {
  const AllocationPtr allocation = r.memory.find_allocation(p);
  if (!allocation || allocation->place != Place::device || allocation->device != device ||
      (allocation->freed && !allocation->free_op))
    return nullptr;
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(p) - allocation->base);
  return offset <= allocation->bytes && bytes <= allocation->bytes - offset ? allocation : nullptr;
}

}  // namespace

const char* name_of(Kind kind) noexcept {
  constexpr const char* kNames[] = {"ncclBroadcast", "ncclReduce",        "ncclAllReduce",
                                    "ncclAllGather", "ncclReduceScatter", "ncclSend",
                                    "ncclRecv"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::size_t bytes_of(int type) noexcept {
  constexpr std::size_t kBytes[] = {0, 1, 4, 0, 8, 0, 2, 4, 8, 2};
  return type >= 0 && static_cast<std::size_t>(type) < std::size(kBytes) ? kBytes[type] : 0;
}

std::size_t Part::sends() const noexcept {
  if (kind == Kind::recv || (kind == Kind::broadcast && rank != root)) return 0;
  return kind == Kind::reduce_scatter ? count * rank_group->devices.size() : count;
}

std::size_t Part::receives() const noexcept {
  if (kind == Kind::send || (kind == Kind::reduce && rank != root)) return 0;
  if (kind == Kind::broadcast && rank == root && send == recv) return 0;  // in place
  return kind == Kind::all_gather ? count * rank_group->devices.size() : count;
}

Result check(const Part& part) {
  Runtime& r = detail::runtime();
  const std::size_t size = bytes_of(part.type);
  const int device = part.rank_group->devices[static_cast<std::size_t>(part.rank)];
  if (size == 0 || part.root < 0 || part.root >= static_cast<int>(part.rank_group->devices.size()))
    return kInvalidArgument;
  const Runtime::Lock lock(r.mutex);
  const auto stream = r.find_stream(part.stream, name_of(part.kind), Location::current());
  if (!stream || stream->device != device || r.reports.sticky_of(device) != cudaSuccess)
    return kUnhandledCudaError;
  if (part.sends() && !find(r, part.send, part.sends() * size, device)) return kInvalidArgument;
  return part.receives() && !find(r, part.recv, part.receives() * size, device) ? kInvalidArgument
                                                                                : kSuccess;
}

void enqueue(const std::vector<Part>& parts, bool stalls, Sum order) {
  Runtime& r = detail::runtime();
  const std::size_t ranks = parts.front().rank_group->devices.size();
  const std::size_t expected = parts.front().pairs() ? 2 : ranks;
  const Location here = Location::current();
  std::vector<BytesPtr> sent(ranks);
  std::vector<OpPtr> taken(ranks);
  for (BytesPtr& bytes : sent) bytes = std::make_shared<Bytes>();
  {
    const Runtime::Lock lock(r.mutex);
    for (const Part& part : parts) {
      const auto rank = static_cast<std::size_t>(part.rank);
      const auto stream = r.find_stream(part.stream, name_of(part.kind), here);
      if (!stream) continue;  // reported
      const std::size_t bytes = part.sends() * bytes_of(part.type);
      const AllocationPtr allocation = r.memory.find_allocation(part.send);
      char* const p = static_cast<char*>(const_cast<void*>(part.send));
      taken[rank] = r.enqueue(*stream, OpKind::copy, name_of(part.kind), here,
                              [&r, p, bytes, allocation, to = sent[rank]](Op& op) {
                                if (bytes == 0) return;
                                touch(r, op, allocation, p, bytes, Access::read);
                                to->assign(p, p + bytes);
                              });
      if (stalls || parts.size() < expected)
        r.enqueue(*stream, OpKind::host_function, name_of(part.kind), here,
                  [rank_group = part.rank_group, rank = part.rank](Op&) {
                    rank_group->await_abort(rank);
                  });
    }
    for (const Part& part : parts) {
      const auto stream = r.find_stream(part.stream, name_of(part.kind), here);
      const std::size_t bytes = part.receives() * bytes_of(part.type);
      if (!stream || bytes == 0) continue;
      std::vector<OpPtr> waits;
      for (const Part& other : parts)
        if (const OpPtr& op = taken[static_cast<std::size_t>(other.rank)];
            op && needs(part, other.rank))
          waits.push_back(op);
      const AllocationPtr allocation = r.memory.find_allocation(part.recv);
      r.enqueue(
          *stream, OpKind::copy, name_of(part.kind), here,
          [&r, part, bytes, allocation, sent, order](Op& op) {
            char* const to = static_cast<char*>(part.recv);
            touch(r, op, allocation, to, bytes, Access::write);
            if (part.rank_group->is_aborted(part.rank)) {
              std::memset(to, 0xff, bytes);
              return;
            }
            const Bytes result = result_of(part, sent, order);
            std::memcpy(to, result.data(), result.size());
          },
          std::move(waits));
    }
  }
  r.settle();
}

}  // namespace braid::simt::nccl
