// The engine of ranks that are threads of one process: copies memory.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include <braid/core/error.hpp>
#include <braid/parallel/devices.hpp>
#include <braid/parallel/internal/thread_ranks.hpp>

#include "process/communicator.hpp"
#include "process/nccl_agreement.hpp"
#include "process/reduce_host.hpp"

namespace braid::parallel {
namespace process {
namespace {

struct Message {
  void* data;
  std::int64_t bytes;
  std::int64_t other = -1;  // the bytes of the other side, if they differ
  bool done = false;
};

/// What the ranks of a group share.
struct Group {
  explicit Group(int n)
      : calls(static_cast<std::size_t>(n)), size(n), parts(static_cast<std::size_t>(n)) {}
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<const BraidEngineCall*> calls;  // of each rank, while it is in a collective
  const int size;
  int arrived = 0, active = 0;  // active: ranks that read the memory of others
  std::uint64_t round = 0;
  bool broken = false;
  // unmatched sends and receives, by sender, receiver and tag
  std::map<std::tuple<int, int, int>, std::deque<std::shared_ptr<Message>>> sends, receives;
  std::vector<const char*> parts;  // of a sum, where each rank has added its own
  std::map<std::string, std::weak_ptr<Group>> children;
};

struct Request {
  std::shared_ptr<Message> message;
};

class ThreadEngine final : public HostEngine {
 public:
  ThreadEngine(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return group_->size; }

  EngineResult run(const BraidEngineCall& call, const BraidEnginePoll& poll) override {
    Group& g = *group_;
    std::unique_lock lock(g.mutex);
    g.calls[static_cast<std::size_t>(rank_)] = &call;
    if (!meet(lock, poll)) return {kBraidStopped, {}};
    std::string error;
    read(lock, [&] { first_part(call, error); });
    if (!meet(lock, poll)) return {kBraidStopped, {}};
    if (call.kind == kBraidReduce || call.kind == kBraidAllReduce) {
      read(lock, [&] { second_part(call); });
      if (!meet(lock, poll)) return {kBraidStopped, {}};
    }
    if (!error.empty()) return {kBraidFailed, error};
    return {};
  }

  void* start(const BraidEngineCall& call, std::string&) override {
    Group& g = *group_;
    const bool sends = call.kind == kBraidSend;
    auto mine = std::make_shared<Message>();
    mine->data = sends ? const_cast<void*>(call.in) : call.out;
    mine->bytes = call.count * call.element_bytes;
    const std::tuple<int, int, int> key{sends ? rank_ : call.peer, sends ? call.peer : rank_,
                                        call.tag};
    const std::lock_guard lock(g.mutex);
    auto& others = (sends ? g.receives : g.sends)[key];
    if (others.empty()) {
      (sends ? g.sends : g.receives)[key].push_back(mine);
    } else {
      // The side that comes second copies, so that no rank has to look at its requests.
      const std::shared_ptr<Message> other = others.front();
      others.pop_front();
      if (other->bytes != mine->bytes) {
        other->other = mine->bytes;
        mine->other = other->bytes;
      } else if (mine->bytes > 0 && !g.broken) {
        if (sends) std::memcpy(other->data, mine->data, static_cast<std::size_t>(mine->bytes));
        else std::memcpy(mine->data, other->data, static_cast<std::size_t>(mine->bytes));
      }
      mine->done = other->done = true;
    }
    return new Request{mine};
  }

  EngineResult test(void* opaque) override {
    auto* const request = static_cast<Request*>(opaque);
    const std::lock_guard lock(group_->mutex);
    if (!request->message->done) return {kBraidPending, {}};
    const std::shared_ptr<Message> message = request->message;
    delete request;
    if (message->other >= 0)
      return {kBraidFailed,
              str("send and recv: expected messages of one size, got ", message->bytes,
                  " bytes on rank ", rank_, " and ", message->other, " on the other rank")};
    return {};
  }

  std::unique_ptr<HostEngine> split(const std::string& id, int color, int rank, int size,
                                    const BraidEnginePoll&, EngineResult&) override {
    if (color < 0) return nullptr;
    const std::lock_guard lock(group_->mutex);
    std::weak_ptr<Group>& weak = group_->children[id];
    std::shared_ptr<Group> child = weak.lock();
    if (!child) weak = child = std::make_shared<Group>(size);
    kept_.push_back(child);  // until all ranks have it
    return std::make_unique<ThreadEngine>(std::move(child), rank);
  }

  void drop(void* request) noexcept override { delete static_cast<Request*>(request); }

  void abort() noexcept override {
    const std::lock_guard lock(group_->mutex);
    group_->broken = true;
    // Nobody may touch the memory of requests any longer.
    group_->sends.clear();
    group_->receives.clear();
    group_->changed.notify_all();
  }

 private:
  /// Waits until all ranks are here. False if the group has ended; then no rank reads another's
  /// memory any longer.
  bool meet(std::unique_lock<std::mutex>& lock, const BraidEnginePoll& poll) {
    Group& g = *group_;
    const std::uint64_t round = g.round;
    if (++g.arrived == g.size) {
      g.arrived = 0;
      ++g.round;
      g.changed.notify_all();
    }
    while (g.round == round && !g.broken) {
      lock.unlock();
      const bool stopped = poll.stopped(poll.context) != 0;
      lock.lock();
      if (stopped) {
        g.broken = true;
        g.changed.notify_all();
      } else if (g.round == round && !g.broken) {
        g.changed.wait_for(lock, std::chrono::milliseconds(5));
      }
    }
    if (!g.broken) return true;
    g.changed.wait(lock, [&] { return g.active == 0; });
    return false;
  }

  template <class F> void read(std::unique_lock<std::mutex>& lock, F&& f) {
    ++group_->active;
    lock.unlock();
    f();
    lock.lock();
    if (--group_->active == 0) group_->changed.notify_all();
  }

  [[nodiscard]] const BraidEngineCall& call_of(int rank) const {
    return *group_->calls[static_cast<std::size_t>(rank)];
  }

  /// Reads the inputs of the others. Results that others may still read as inputs go to sum_.
  void first_part(const BraidEngineCall& call, std::string& error) {
    const std::int64_t unit = call.element_bytes;
    char* const out = static_cast<char*>(call.out);
    const auto copy = [](char* to, const void* from, std::int64_t bytes) {
      if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
    };
    switch (call.kind) {
      case kBraidBroadcast:
        if (rank_ != call.peer) copy(out, call_of(call.peer).in, call.count * unit);
        break;
      case kBraidAllGather: {
        std::int64_t at = 0;
        for (int r = 0; r < size(); ++r) {
          const std::int64_t bytes = (call.out_counts ? call.out_counts[r] : call.count) * unit;
          copy(out + at, call_of(r).in, bytes);
          at += bytes;
        }
        break;
      }
      case kBraidAllToAll: {
        std::int64_t at = 0;
        for (int r = 0; r < size(); ++r) {
          const BraidEngineCall& from = call_of(r);
          std::int64_t offset = 0;
          for (int to = 0; to < rank_; ++to) offset += from.in_counts[to];
          if (from.in_counts[rank_] != call.out_counts[r]) {
            error = str("all_to_all: rank ", r, " sends ", from.in_counts[rank_],
                        " elements to rank ", rank_, ", which expects ", call.out_counts[r]);
            return;
          }
          copy(out + at, static_cast<const char*>(from.in) + offset * unit,
               call.out_counts[r] * unit);
          at += call.out_counts[r] * unit;
        }
        break;
      }
      default: {  // a sum: this rank adds its part
        const std::int64_t begin = begin_of(call, rank_), n = begin_of(call, rank_ + 1) - begin;
        sum_.resize(static_cast<std::size_t>(n * unit));
        reduce_host(
            dtype_of_type(call.type), op_of(call.op), static_cast<std::size_t>(size()),
            [&](std::size_t r) {
              return static_cast<const char*>(call_of(static_cast<int>(r)).in) + begin * unit;
            },
            sum_.data(), n);
        parts()[static_cast<std::size_t>(rank_)] = sum_.data();
      }
    }
  }

  void second_part(const BraidEngineCall& call) {
    if (call.kind == kBraidReduce && rank_ != call.peer) return;
    for (int r = 0; r < size(); ++r) {
      const std::int64_t begin = begin_of(call, r), n = begin_of(call, r + 1) - begin;
      if (n > 0)
        std::memcpy(static_cast<char*>(call.out) + begin * call.element_bytes,
                    parts()[static_cast<std::size_t>(r)],
                    static_cast<std::size_t>(n * call.element_bytes));
    }
  }

  [[nodiscard]] std::int64_t begin_of(const BraidEngineCall& call, int rank) const {
    return call.count / size() * rank + std::min<std::int64_t>(rank, call.count % size());
  }
  static DType dtype_of_type(std::int32_t type) {
    constexpr DType kTypes[] = {DType::uint8, DType::int32, DType::int64, DType::float32,
                                DType::float64};
    return kTypes[type];
  }
  static ReduceOp op_of(std::int32_t op) {
    constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max};
    return kOps[op];
  }
  std::vector<const char*>& parts() { return group_->parts; }

  std::shared_ptr<Group> group_;
  const int rank_;
  std::vector<char> sum_;
  std::vector<std::shared_ptr<Group>> kept_;
};

}  // namespace
}  // namespace process

namespace detail {

std::vector<std::shared_ptr<ProcessCommunicator>> make_thread_communicators(
    const std::vector<Device>& devices, double timeout, bool nccl) {
  using namespace process;
  if (devices.empty())
    throw ArgumentError("make_thread_communicators: expected at least one device, got none");
  std::vector<std::shared_ptr<ProcessCommunicator>> all;
  if (devices.size() == 1) {
    all.push_back(std::make_shared<EngineCommunicator>(devices.front()));
    return all;
  }
  if (nccl) {
    std::vector<NcclFacts> facts;
    for (const Device device : devices) facts.push_back(nccl_facts(device, Engine::nccl));
    if (const NcclAgreement agreement = agree_on_nccl(facts); !agreement.error.empty())
      throw CommError(agreement.error);
  }
  const auto group = std::make_shared<Group>(static_cast<int>(devices.size()));
  const auto store = std::make_shared<MemoryStore>();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    CoreOptions options;
    options.device = devices[i];
    options.timeout = timeout;
    options.engine_name = "threads";
    options.nccl = nccl;
    options.store = store;
    auto core = std::make_shared<Core>(std::make_unique<ThreadEngine>(group, static_cast<int>(i)),
                                       std::move(options));
    core->start();
    all.push_back(std::make_shared<EngineCommunicator>(std::move(core)));
  }
  return all;
}

}  // namespace detail
}  // namespace braid::parallel
