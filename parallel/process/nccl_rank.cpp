#include "process/nccl_rank.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/ops/binary.hpp>
#include <braid/core/ops/create.hpp>

#include "copies.hpp"

namespace braid::parallel::process {
namespace {

using Kind = nccl::Call::Kind;

bool reduces(CallKind kind) {
  return kind == CallKind::reduce || kind == CallKind::all_reduce ||
         kind == CallKind::reduce_scatter;
}

bool is_16_bit(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

int op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::product: return nccl::kProduct;
    case ReduceOp::min: return nccl::kMin;
    case ReduceOp::max: return nccl::kMax;
    default: return nccl::kSum;  // a mean is divided afterwards: NCCL's own rounds another way
  }
}

Kind kind_of(CallKind kind) {
  switch (kind) {
    case CallKind::broadcast: return Kind::broadcast;
    case CallKind::reduce: return Kind::reduce;
    case CallKind::all_reduce: return Kind::all_reduce;
    case CallKind::all_gather: return Kind::all_gather;
    case CallKind::reduce_scatter: return Kind::reduce_scatter;
    default: throw InternalError("NCCL: expected a collective, got another call");
  }
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  constexpr double kMost = 1e9;
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(std::ceil(std::min(seconds, kMost) * 1000)));
}

}  // namespace

NcclRank::NcclRank(Device device, nccl::Remote remote, double timeout)
    : device_(device),
      rank_(remote.rank),
      size_(remote.size),
      group_(device, std::move(remote), milliseconds_of(timeout)) {}

bool NcclRank::takes(const Call& call) {
  if (call.kind > CallKind::all_to_all) return false;
  if (device_context(call.in.device).host_memory || device_context(call.out.device).host_memory)
    return false;
  const bool order = call.op == ReduceOp::min || call.op == ReduceOp::max;
  return !(reduces(call.kind) && order && is_floating(call.dtype));
}

bool NcclRank::has_result(const Call& call) const {
  return call.kind != CallKind::reduce || call.peer == rank_;
}

void NcclRank::run(Call& call, Clock::time_point deadline) {
  const std::shared_ptr<Stream>& stream = group_.stream();
  for (const std::unique_ptr<Event>& event : call.ready) stream->wait(*event);
  // If the communicator fails, the stream may use the memory for longer than the call lives.
  if (call.kept_in.defined()) record_stream(call.kept_in, *stream);
  if (call.kept_out.defined()) record_stream(call.kept_out, *stream);
  if (call.kind == CallKind::all_to_all) return all_to_all(call, deadline);
  if (reduces(call.kind) && is_16_bit(call.dtype)) return reduce_wide(call, deadline);
  const bool part = call.kind == CallKind::reduce_scatter;
  const std::int64_t count = part ? call.count / size_ : call.count;
  void* const out = has_result(call) ? call.out.data : nullptr;
  group_.run_until(deadline, name_of(call.kind),
                   {{kind_of(call.kind), 0, call.in.data, out, static_cast<std::size_t>(count),
                     nccl::type_of(call.dtype), call.peer, op_of(call.op)}});
  if (reduces(call.kind) && call.op == ReduceOp::mean && has_result(call))
    divide(out, count, call.dtype);
}

void NcclRank::divide(void* data, std::int64_t count, DType dtype) {
  const StreamGuard guard(group_.stream());
  const Tensor mean = from_blob(data, {count}, dtype, {}, device_) / size_;
  copy_flat(data, device_, mean.id()->data(), device_,
            static_cast<std::size_t>(count) * size_of(dtype));
  group_.stream()->synchronize();
}

void NcclRank::reduce_wide(const Call& call, Clock::time_point deadline) {
  const StreamGuard guard(group_.stream());
  const bool part = call.kind == CallKind::reduce_scatter;
  const std::int64_t count = part ? call.count / size_ : call.count;
  const Tensor wide =
      from_blob(call.in.data, {call.count}, call.dtype, {}, device_).to(DType::float32);
  Tensor sum = part ? empty({count}, {.device = device_}) : wide;
  group_.run_until(
      deadline, name_of(call.kind),
      {{kind_of(call.kind), 0, wide.id()->data(), has_result(call) ? sum.id()->data() : nullptr,
        static_cast<std::size_t>(count), nccl::kFloat32, call.peer, op_of(call.op)}});
  if (!has_result(call)) return;
  if (call.op == ReduceOp::mean) sum = sum / size_;
  const Tensor rounded = sum.to(call.dtype);
  copy_flat(call.out.data, device_, rounded.id()->data(), device_,
            static_cast<std::size_t>(count) * size_of(call.dtype));
  group_.stream()->synchronize();
}

void NcclRank::all_to_all(const Call& call, Clock::time_point deadline) {
  const std::size_t size = size_of(call.dtype);
  const int type = nccl::type_of(call.dtype);
  const auto* from = static_cast<const char*>(call.in.data);
  auto* to = static_cast<char*>(call.out.data);
  std::vector<nccl::Call> calls;
  for (int peer = 0; peer < size_; ++peer) {
    const auto p = static_cast<std::size_t>(peer);
    const auto out = static_cast<std::size_t>(call.in_counts[p]),
               in = static_cast<std::size_t>(call.out_counts[p]);
    if (out > 0) calls.push_back({Kind::send, 0, from, nullptr, out, type, peer});
    if (in > 0) calls.push_back({Kind::recv, 0, nullptr, to, in, type, peer});
    if (out > 0) from += out * size;
    if (in > 0) to += in * size;
  }
  if (!calls.empty()) group_.run_until(deadline, name_of(call.kind), std::move(calls));
}

}  // namespace braid::parallel::process
