#include "process/execute.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <braid/core/error.hpp>

#include "process/reduce_host.hpp"

namespace braid::parallel::process {
namespace {

// bytes: a larger sum is made in blocks, so that the memory for the parts of others is bounded. Two
// ranks on one host: blocks of 4 MiB take 1.2 times as long, since each waits for the other rank.
constexpr std::size_t kBlockBytes = std::size_t{16} << 20;

std::int64_t block_of(DType dtype) {
  return static_cast<std::int64_t>(kBlockBytes / size_of(dtype));
}

// bytes: larger tensors have huge pages (core/memory/host_memory.cpp)
constexpr std::size_t kHugePages = std::size_t{4} << 20;

// bytes: if the parts that ranks exchange for a sum are smaller, the engine adds. It has algorithms
// for many ranks and few bytes.
constexpr std::size_t kSmallPart = 16 * 1024;

/// True if the engine adds.
bool adds(DType dtype, ReduceOp op, std::size_t part) {
  if (part >= kSmallPart) return false;
  if (dtype == DType::float16 || dtype == DType::bfloat16) return false;
  const bool order = op == ReduceOp::min || op == ReduceOp::max;
  return !(order && is_floating(dtype));  // what an engine does with a NaN is undefined
}

BraidEngineType type_of(DType dtype) {
  switch (dtype) {
    case DType::int32: return kBraidInt32;
    case DType::int64: return kBraidInt64;
    case DType::float32: return kBraidFloat32;
    case DType::float64: return kBraidFloat64;
    default: return kBraidUint8;
  }
}

BraidEngineOp op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::product: return kBraidProduct;
    case ReduceOp::min: return kBraidMin;
    case ReduceOp::max: return kBraidMax;
    default: return kBraidSum;
  }
}

BraidEngineCall bytes_call(BraidEngineKind kind, const void* in, void* out, std::int64_t count) {
  BraidEngineCall call{};
  call.kind = kind;
  call.type = kBraidUint8;
  call.element_bytes = 1;
  call.in = in;
  call.out = out;
  call.count = count;
  return call;
}

/// A sum of `count` elements.
BraidEngineCall sum_call(BraidEngineKind kind, const void* in, void* out, std::int64_t count,
                         DType dtype, ReduceOp op) {
  BraidEngineCall call{};
  call.kind = kind;
  call.op = op_of(op);
  call.type = type_of(dtype);
  call.element_bytes = static_cast<std::int32_t>(size_of(dtype));
  call.in = in;
  call.out = out;
  call.count = count;
  return call;
}

}  // namespace

char* Scratch::get(std::size_t bytes) {
  if (bytes > size_ || size_ == 0) {
    size_ = std::max(bytes, kHugePages);
    data_ = make_tensor({static_cast<std::int64_t>(size_)}, DType::uint8, Device());
  }
  return reinterpret_cast<char*>(data_.data<std::uint8_t>());
}

void Collectives::run(const BraidEngineCall& call) {
  const EngineResult result = engine_.run(call, poll_);
  if (result.result == kBraidStopped) throw Stopped{};
  if (result.result != kBraidDone) throw CommError(result.text);
}

void Collectives::broadcast(void* data, std::size_t bytes, int root) {
  BraidEngineCall call = bytes_call(kBraidBroadcast, data, data, static_cast<std::int64_t>(bytes));
  call.peer = root;
  run(call);
}

void Collectives::all_gather(const void* in, void* out, std::size_t bytes) {
  run(bytes_call(kBraidAllGather, in, out, static_cast<std::int64_t>(bytes)));
}

void Collectives::all_to_all(const void* in, void* out, std::span<const std::int64_t> in_counts,
                             std::span<const std::int64_t> out_counts, std::size_t element_bytes,
                             bool skips_own) {
  BraidEngineCall call = bytes_call(kBraidAllToAll, in, out, 0);
  call.in_counts = in_counts.data();
  call.out_counts = out_counts.data();
  call.element_bytes = static_cast<std::int32_t>(element_bytes);
  call.skips_own = skips_own ? 1 : 0;
  run(call);
}

void Collectives::reduce(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op,
                         int root) {
  const std::size_t size = size_of(dtype), bytes = static_cast<std::size_t>(count) * size;
  const bool here = engine_.rank() == root;
  if (bytes * ranks() <= kGathered) {
    char* const all = scratch_.get(bytes * ranks());
    all_gather(in, all, bytes);
    if (here)
      reduce_host(dtype, op, ranks(), [&](std::size_t r) { return all + r * bytes; }, out, count);
    return;
  }
  if (adds(dtype, op, bytes / ranks())) {
    BraidEngineCall call = sum_call(kBraidReduce, in, here ? out : nullptr, count, dtype, op);
    call.peer = root;
    run(call);
    if (here && op == ReduceOp::mean) divide_host(dtype, out, count, engine_.size());
    return;
  }
  for (std::int64_t at = 0, block = block_of(dtype); at < count; at += block) {
    const std::size_t offset = static_cast<std::size_t>(at) * size;
    reduce_block(static_cast<const char*>(in) + offset,
                 here ? static_cast<char*>(out) + offset : nullptr, std::min(block, count - at),
                 dtype, op, root);
  }
}

void Collectives::all_reduce(const void* in, void* out, std::int64_t count, DType dtype,
                             ReduceOp op) {
  const std::size_t size = size_of(dtype), bytes = static_cast<std::size_t>(count) * size;
  if (bytes * ranks() <= kGathered) {
    char* const all = scratch_.get(bytes * ranks());
    all_gather(in, all, bytes);
    reduce_host(dtype, op, ranks(), [&](std::size_t r) { return all + r * bytes; }, out, count);
    return;
  }
  if (adds(dtype, op, bytes / ranks())) {
    run(sum_call(kBraidAllReduce, in, out, count, dtype, op));
    if (op == ReduceOp::mean) divide_host(dtype, out, count, engine_.size());
    return;
  }
  if (engine_.link() == kBraidLinkPieces) return reduce_pieces(in, out, count, dtype, op);
  for (std::int64_t at = 0, block = block_of(dtype); at < count; at += block) {
    const std::size_t offset = static_cast<std::size_t>(at) * size;
    reduce_block(static_cast<const char*>(in) + offset, static_cast<char*>(out) + offset,
                 std::min(block, count - at), dtype, op, -1);
  }
}

void Collectives::reduce_pieces(const void* in, void* out, std::int64_t count, DType dtype,
                                ReduceOp op) {
  struct Sum {
    DType dtype;
    ReduceOp op;
    std::size_t ranks;
  } sum{dtype, op, ranks()};
  const BraidEngineReducer reducer{
      &sum, [](void* context, const void* const* parts, void* to, std::int64_t n) {
        const Sum& s = *static_cast<const Sum*>(context);
        reduce_host(s.dtype, s.op, s.ranks, [&](std::size_t r) { return parts[r]; }, to, n);
      }};
  BraidEngineCall call = sum_call(kBraidReducePieces, in, out, count, dtype, op);
  call.reducer = &reducer;
  run(call);
}

void Collectives::reduce_block(const char* in, char* out, std::int64_t n, DType dtype, ReduceOp op,
                               int root) {
  const auto size = static_cast<std::int64_t>(ranks()), me = std::int64_t{engine_.rank()};
  const auto begin = [&](std::int64_t r) { return n * r / size; };
  const std::int64_t mine = begin(me + 1) - begin(me);
  std::vector<std::int64_t> parts(ranks()), sent, received(ranks(), mine), none(ranks(), 0);
  for (std::int64_t r = 0; r < size; ++r)
    parts[static_cast<std::size_t>(r)] = begin(r + 1) - begin(r);
  const std::size_t bytes = size_of(dtype), part = static_cast<std::size_t>(mine) * bytes,
                    own = static_cast<std::size_t>(begin(me)) * bytes,
                    place = static_cast<std::size_t>(me);
  const std::size_t whole = static_cast<std::size_t>(n) * bytes;
  // Within a host the kernel copies between the processes, and pins each page that it reads: three
  // times as fast from the huge pages of the scratch memory, so that one more copy pays.
  const bool stages = engine_.link() == kBraidLinkMemory && whole < kHugePages;
  char* const all = scratch_.get(part * (ranks() + 1) + (stages ? whole : 0));
  char* const sum = root < 0 && !stages ? out + own : all + part * ranks();
  const char* sends = in;
  if (stages) {
    char* const copy = all + part * (ranks() + 1);
    std::memcpy(copy, in, own);
    std::memcpy(copy + own + part, in + own + part, whole - own - part);
    sends = copy;
  }
  all_to_all(sends, all, parts, received, bytes, true);
  reduce_host(
      dtype, op, ranks(), [&](std::size_t r) { return r == place ? in + own : all + r * part; },
      sum, mine);
  if (root >= 0) {
    sent = none;
    sent[static_cast<std::size_t>(root)] = mine;
    return all_to_all(sum, out, sent, me == root ? parts : none, bytes);
  }
  BraidEngineCall call = bytes_call(kBraidAllGather, sum, out, mine);
  call.element_bytes = static_cast<std::int32_t>(bytes);
  call.out_counts = parts.data();
  run(call);
}

void Collectives::reduce_scatter(const void* in, void* out, std::int64_t part, DType dtype,
                                 ReduceOp op) {
  const std::size_t bytes = static_cast<std::size_t>(part) * size_of(dtype);
  char* const received = scratch_.get(bytes * ranks());
  const std::vector<std::int64_t> parts(ranks(), part);
  const auto me = static_cast<std::size_t>(engine_.rank());
  const char* const own = static_cast<const char*>(in) + me * bytes;
  all_to_all(in, received, parts, parts, size_of(dtype), true);
  reduce_host(
      dtype, op, ranks(), [&](std::size_t r) { return r == me ? own : received + r * bytes; }, out,
      part);
}

}  // namespace braid::parallel::process
