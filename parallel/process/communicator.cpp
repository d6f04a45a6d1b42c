#include "process/communicator.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>

#include "copies.hpp"

namespace braid::parallel::process {
namespace {

Memory memory_of(const Tensor& t) {
  if (!t.defined()) return {};
  return {t.numel() == 0 ? nullptr : t.id()->data(), t.device(),
          static_cast<std::size_t>(t.numel()) * size_of(t.dtype())};
}

/// Memory of the size of the view; undefined if that has none.
Tensor like(const BufferView& view) {
  return view.data == nullptr ? Tensor() : make_tensor({view.count}, view.dtype, view.device);
}

/// Queues the copy on the device's current stream.
void copy(const Memory& to, const Memory& from) {
  copy_flat(to.data, to.device, from.data, from.device, to.bytes);
}

void check_reduced(const char* op, DType dtype, ReduceOp reduce) {
  if (dtype == DType::bool_) throw DTypeError(str(op, ": expected numbers, got bool"));
  if (reduce == ReduceOp::mean && !is_floating(dtype))
    throw DTypeError(str(op, ": expected floating point for a mean, got ", dtype));
}

/// Records when the work that is queued on the device's current stream is done.
void add_ready(Call& call, Device device) {
  if (device_context(device).host_memory) return;
  call.ready.push_back(make_event(device));
  current_stream(device).record(*call.ready.back());
}

}  // namespace

EngineCommunicator::EngineCommunicator(std::shared_ptr<Core> core)
    : ProcessCommunicator({core->options().device}, core->size()), core_(std::move(core)) {}

EngineCommunicator::EngineCommunicator(Device device) : ProcessCommunicator({device}, 1) {}

EngineCommunicator::~EngineCommunicator() { shut_down(true); }

void EngineCommunicator::shut_down(bool orderly) noexcept {
  if (core_) core_->stop(orderly);
}

std::string_view EngineCommunicator::engine() const noexcept {
  if (!core_) return "none";
  return core_->options().nccl ? "nccl" : std::string_view(core_->options().engine_name);
}

void EngineCommunicator::check_tensor(const char* op, const Tensor& t) const {
  if (t.device() != device() && t.device().type() != DeviceType::cpu)
    throw DeviceError(
        str(op, ": expected a tensor on ", device(), " or the CPU, got ", t.device()));
  if (!t.is_contiguous())
    throw LayoutError(str(op, ": expected a contiguous tensor, got strides ", t.strides()));
}

void EngineCommunicator::check_rank(const char* op, const char* what, int rank) const {
  if (rank < 0 || rank >= size())
    throw ArgumentError(
        str(op, ": ", what, ": expected a rank from 0 to ", size() - 1, ", got ", rank));
}

void EngineCommunicator::check_parts(const char* op, const Tensor& whole,
                                     const Tensor& part) const {
  check_tensor(op, whole);
  check_tensor(op, part);
  if (whole.dtype() != part.dtype())
    throw DTypeError(
        str(op, ": expected tensors of one dtype, got ", whole.dtype(), " and ", part.dtype()));
  if (whole.numel() != part.numel() * size())
    throw ShapeError(str(op, ": expected ", size(), " times the elements of ", part.shape(),
                         ", got ", whole.shape()));
}

std::shared_ptr<Call> EngineCommunicator::call(CallKind kind, const Tensor& in, const Tensor& out,
                                               std::string_view name) const {
  auto made = std::make_shared<Call>();
  const Tensor& t = in.defined() ? in : out;
  made->kind = kind;
  made->name = name;
  made->in = memory_of(in);
  made->out = memory_of(out);
  made->dtype = t.dtype();
  made->shape = t.shape();
  made->count = t.numel();
  made->kept_in = in;
  made->kept_out = out;
  add_ready(*made, t.device());
  if (in.defined() && out.defined() && in.device() != out.device()) add_ready(*made, out.device());
  return made;
}

Work EngineCommunicator::add(std::shared_ptr<Call> call) {
  if (core_) return Work(core_->add(std::move(call)));
  check();
  const bool moves = call->in.data != nullptr && call->out.data != nullptr;
  if (moves && call->in.data != call->out.data)
    copy_flat(call->out.data, call->out.device, call->in.data, call->in.device, call->out.bytes);
  if (moves && call->kept_out.defined()) call->kept_out.storage()->bump_version();
  if (!call->function) return {};
  auto state = std::make_shared<Work::State>();
  try {
    call->function();
    state->complete(nullptr);
  } catch (...) {
    state->complete(std::current_exception());
  }
  return Work(std::move(state));
}

Work EngineCommunicator::start_broadcast(const Tensor& t, int root, std::string_view name) {
  check_tensor("broadcast", t);
  check_rank("broadcast", "root", root);
  auto made = call(CallKind::broadcast, t, t, name);
  made->peer = root;
  if (root == rank()) made->kept_out = {};  // is only read
  return add(std::move(made));
}

Work EngineCommunicator::start_reduce(const Tensor& t, int root, ReduceOp op,
                                      std::string_view name) {
  check_tensor("reduce", t);
  check_rank("reduce", "root", root);
  check_reduced("reduce", t.dtype(), op);
  auto made = call(CallKind::reduce, t, t, name);
  made->peer = root;
  made->op = op;
  if (root != rank()) made->kept_out = {};
  return add(std::move(made));
}

Work EngineCommunicator::start_all_reduce(const Tensor& t, ReduceOp op, std::string_view name) {
  check_tensor("all_reduce", t);
  check_reduced("all_reduce", t.dtype(), op);
  auto made = call(CallKind::all_reduce, t, t, name);
  made->op = op;
  return add(std::move(made));
}

Work EngineCommunicator::start_all_gather(const Tensor& out, const Tensor& in,
                                          std::string_view name) {
  check_parts("all_gather", out, in);
  return add(call(CallKind::all_gather, in, out, name));
}

Work EngineCommunicator::start_reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp op,
                                              std::string_view name) {
  check_parts("reduce_scatter", in, out);
  check_reduced("reduce_scatter", in.dtype(), op);
  auto made = call(CallKind::reduce_scatter, in, out, name);
  made->op = op;
  return add(std::move(made));
}

Work EngineCommunicator::start_all_to_all(const Tensor& out, const Tensor& in,
                                          std::vector<std::int64_t> out_counts,
                                          std::vector<std::int64_t> in_counts,
                                          std::string_view name) {
  constexpr const char* kOp = "all_to_all";
  check_tensor(kOp, out);
  check_tensor(kOp, in);
  if (out.dtype() != in.dtype())
    throw DTypeError(
        str(kOp, ": expected tensors of one dtype, got ", out.dtype(), " and ", in.dtype()));
  const auto complete = [&](const char* what, std::vector<std::int64_t>& counts, const Tensor& t) {
    if (counts.empty()) {
      if (t.numel() % size() != 0)
        throw ShapeError(str(kOp, ": ", what, ": expected a multiple of ", size(),
                             " elements, got ", t.shape()));
      counts.assign(static_cast<std::size_t>(size()), t.numel() / size());
      return;
    }
    if (counts.size() != static_cast<std::size_t>(size()))
      throw ArgumentError(
          str(kOp, ": ", what, ": expected ", size(), " counts, got ", counts.size()));
    std::int64_t sum = 0;
    for (const std::int64_t n : counts)
      if (n < 0 || n > t.numel() - sum)
        throw ArgumentError(str(kOp, ": ", what, ": expected counts from 0 on with the sum ",
                                t.numel(), ", got ", n, " after a sum of ", sum));
      else sum += n;
    if (sum != t.numel())
      throw ArgumentError(
          str(kOp, ": ", what, ": expected counts with the sum ", t.numel(), ", got ", sum));
  };
  complete("out", out_counts, out);
  complete("in", in_counts, in);
  if (size() == 1 && in.numel() != out.numel())
    throw ShapeError(
        str(kOp, ": expected as many elements, got ", out.shape(), " and ", in.shape()));
  auto made = call(CallKind::all_to_all, in, out, name);
  made->shape = {};  // may differ between ranks; the counts are compared
  made->in_counts = std::move(in_counts);
  made->out_counts = std::move(out_counts);
  return add(std::move(made));
}

Work EngineCommunicator::start_send(const Tensor& t, int to, int tag, std::string_view name) {
  check_tensor("send", t);
  check_rank("send", "to", to);
  if (to == rank()) throw ArgumentError(str("send: expected another rank, got its own, ", to));
  auto made = call(CallKind::send, t, {}, name);
  made->peer = to;
  made->tag = tag;
  return add(std::move(made));
}

Work EngineCommunicator::start_recv(const Tensor& t, int from, int tag, std::string_view name) {
  check_tensor("recv", t);
  check_rank("recv", "from", from);
  if (from == rank()) throw ArgumentError(str("recv: expected another rank, got its own, ", from));
  auto made = call(CallKind::recv, {}, t, name);
  made->peer = from;
  made->tag = tag;
  return add(std::move(made));
}

Work EngineCommunicator::start_barrier(std::string_view name) {
  auto made = std::make_shared<Call>();
  made->kind = CallKind::barrier;
  made->name = name;
  return add(std::move(made));
}

Work EngineCommunicator::start_function(std::function<void()> f) {
  auto made = std::make_shared<Call>();
  made->kind = CallKind::function;
  made->function = std::move(f);
  return add(std::move(made));
}

std::shared_ptr<ProcessCommunicator> EngineCommunicator::split(int color, int key) {
  if (!core_) {
    check();
    return color < 0 ? nullptr : std::make_shared<EngineCommunicator>(device());
  }
  std::shared_ptr<Core> child = core_->split(color, key);
  if (!child) return nullptr;
  return std::make_shared<EngineCommunicator>(std::move(child));
}

void EngineCommunicator::abort_with(std::string_view reason) noexcept {
  if (core_)
    return core_->monitor().fail(FailureKind::aborted,
                                 str("rank ", rank(), " aborted the communicator: ", reason));
  const std::lock_guard lock(mutex_);
  if (!failure_)
    failure_ =
        std::make_exception_ptr(CommAbortedError(str("rank 0 aborted the communicator: ", reason)));
}

void EngineCommunicator::check() {
  std::exception_ptr failure;
  if (core_) {
    failure = core_->monitor().failure();
  } else {
    const std::lock_guard lock(mutex_);
    failure = failure_;
  }
  if (failure) std::rethrow_exception(failure);
}

// ---- the base class: views that the caller owns until the call returns

// The work is on copies: after a failure an engine may use the memory of a call for longer than the
// caller waits.
void EngineCommunicator::run_all(CallKind kind, std::span<const BufferView> in,
                                 std::span<const BufferView> out) {
  struct Item {
    Work work;
    Tensor result;
  };
  std::vector<Item> items;
  for (std::size_t i = 0; i < in.size(); ++i) {
    auto made = std::make_shared<Call>();
    const Memory given{in[i].data, in[i].device, in[i].bytes()};
    made->kept_in = like(in[i]);
    made->kept_out = out[i].data == in[i].data ? made->kept_in : like(out[i]);
    made->in = memory_of(made->kept_in);
    made->out = memory_of(made->kept_out);
    if (made->in.data != nullptr) copy(made->in, given);
    made->kind = kind;
    made->dtype = in[i].dtype;
    made->count = in[i].count;
    made->shape = {in[i].count};
    if (kind == CallKind::all_to_all) {
      made->shape = {};
      made->in_counts.assign(static_cast<std::size_t>(size()), in[i].count / size());
      made->out_counts = made->in_counts;
    }
    add_ready(*made, device());
    Tensor result = made->kept_out;
    items.push_back({add(std::move(made)), std::move(result)});
  }
  std::exception_ptr first;
  for (std::size_t i = 0; i < items.size(); ++i) {
    try {
      items[i].work.wait();
      if (const Memory result = memory_of(items[i].result); result.data != nullptr)
        copy({out[i].data, out[i].device, out[i].bytes()}, result);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

void EngineCommunicator::do_broadcast(std::span<const BufferView> buffers) {
  run_all(CallKind::broadcast, buffers, buffers);
}
void EngineCommunicator::do_reduce(std::span<const BufferView> buffers,
                                   std::span<const BufferView> results) {
  run_all(CallKind::reduce, buffers, results);
}
void EngineCommunicator::do_all_reduce(std::span<const BufferView> buffers) {
  run_all(CallKind::all_reduce, buffers, buffers);
}
void EngineCommunicator::do_all_gather(std::span<const BufferView> buffers,
                                       std::span<const BufferView> results) {
  run_all(CallKind::all_gather, buffers, results);
}
void EngineCommunicator::do_reduce_scatter(std::span<const BufferView> buffers,
                                           std::span<const BufferView> results) {
  run_all(CallKind::reduce_scatter, buffers, results);
}
void EngineCommunicator::do_all_to_all(std::span<const BufferView> buffers,
                                       std::span<const BufferView> results) {
  run_all(CallKind::all_to_all, buffers, results);
}

}  // namespace braid::parallel::process
