// How the communicator's thread runs one collective.
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string_view>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>

#include "process/core.hpp"
#include "process/header.hpp"

namespace braid::parallel::process {

void Core::check(Call& call, Collectives& collectives) {
  const Header mine = header_of(call);
  std::vector<Header> all(static_cast<std::size_t>(size_));
  collectives.all_gather(&mine, all.data(), sizeof mine);
  if (const auto text = mismatch(all)) {
    call.checked_failure = true;
    throw CommError(*text);
  }
  if (call.kind == CallKind::all_to_all) check_counts(call, collectives);
}

void Core::check_counts(const Call& call, Collectives& collectives) {
  const auto ranks = static_cast<std::size_t>(size_);
  std::vector<std::int64_t> mine(call.in_counts), all(2 * ranks * ranks);
  mine.insert(mine.end(), call.out_counts.begin(), call.out_counts.end());
  collectives.all_gather(mine.data(), all.data(), mine.size() * sizeof(std::int64_t));
  for (std::size_t from = 0; from < ranks; ++from)
    for (std::size_t to = 0; to < ranks; ++to) {
      const std::int64_t sent = all[2 * ranks * from + to],
                         expected = all[2 * ranks * to + ranks + from];
      if (sent == expected) continue;
      throw CommError(str("all_to_all, call ", call.number, ": rank ", from, " sends ", sent,
                          " elements to rank ", to, ", which expects ", expected));
    }
}

void Core::run_collective(Call& call, Collectives& collectives) {
  if (call.kind == CallKind::split) return call.function();
  if (call.kind == CallKind::barrier) {
    const char one = 1;
    std::vector<char> all(static_cast<std::size_t>(size_));
    // the exchange of the headers was a barrier
    if (!options_.check_collectives) collectives.all_gather(&one, all.data(), 1);
    return;
  }
  if (call.count == 0 && call.kind != CallKind::all_to_all) return;
  if (call.nccl) return run_nccl(call, collectives);
  const std::size_t bytes = static_cast<std::size_t>(call.count) * size_of(call.dtype);
  const bool reads = call.kind != CallKind::broadcast || call.peer == rank_;
  const bool writes = (call.kind != CallKind::broadcast || call.peer != rank_) &&
                      (call.kind != CallKind::reduce || call.peer == rank_);
  const void* const in = reads ? to_host(call.in, staged_in_) : nullptr;
  void* out = nullptr;
  if (writes && call.out.data != nullptr) {
    if (device_context(call.out.device).host_memory) {
      out = call.out.data;
    } else if (reads && call.out.data == call.in.data) {
      out = staged_in_.data();
    } else {
      if (staged_out_.size() < call.out.bytes) staged_out_ = std::vector<char>(call.out.bytes);
      out = staged_out_.data();
    }
  }
  switch (call.kind) {
    case CallKind::broadcast:
      collectives.broadcast(reads ? const_cast<void*>(in) : out, bytes, call.peer);
      break;
    case CallKind::reduce:
      collectives.reduce(in, out, call.count, call.dtype, call.op, call.peer);
      break;
    case CallKind::all_reduce:
      collectives.all_reduce(in, out, call.count, call.dtype, call.op);
      break;
    case CallKind::all_gather: collectives.all_gather(in, out, bytes); break;
    case CallKind::reduce_scatter:
      collectives.reduce_scatter(in, out, call.count / size_, call.dtype, call.op);
      break;
    case CallKind::all_to_all:
      collectives.all_to_all(in, out, call.in_counts, call.out_counts, size_of(call.dtype));
      break;
    default: throw InternalError("run_collective: expected a collective, got another call");
  }
  if (writes) to_device(call.out, out);
}

void Core::run_nccl(Call& call, Collectives& collectives) {
  const auto stopped = [this] { return monitor_->failed(); };
  try {
    if (!nccl_) {
      (void)stream_of(options_.device);  // makes the thread one of the device
      struct Start {
        nccl::UniqueId id{};
        std::array<char, 256> error{};
      } start;
      if (rank_ == 0) {
        try {
          start.id = nccl::Group::make_id(deadline_, stopped);
        } catch (const std::exception& e) {
          const std::string_view why = e.what();
          std::copy_n(why.begin(), std::min(why.size(), start.error.size() - 1),
                      start.error.begin());
        }
      }
      collectives.broadcast(&start, sizeof start, 0);
      if (start.error[0] != '\0')
        throw CommError(str("rank 0 has no id of NCCL: ", start.error.data()));
      nccl_ = std::make_unique<NcclRank>(options_.device,
                                         nccl::Remote{start.id, rank_, size_, deadline_, stopped,
                                                      [this] { (void)look_at_messages(); }},
                                         options_.timeout);
    }
    nccl_->run(call, deadline_);
  } catch (const CommTimeoutError&) {
    throw;
  } catch (const CommError& e) {
    throw CommError(str("rank ", rank_, ": ", e.what()));
  }
}

std::shared_ptr<Core> Core::split(int color, int key) {
  struct Made {
    std::unique_ptr<HostEngine> engine;
    std::string prefix;
    std::vector<int> ranks;  // in the world
  };
  const auto made = std::make_shared<Made>();
  auto call = std::make_shared<Call>();
  call->kind = CallKind::split;
  Call* const mine = call.get();  // a reference to itself would never be freed
  call->function = [this, mine, color, key, made] {
    Collectives collectives(*engine_, {this, &Core::poll}, scratch_);
    struct Choice {
      std::int32_t color, key;
    };
    const Choice own{color, key};
    std::vector<Choice> all(static_cast<std::size_t>(size_));
    collectives.all_gather(&own, all.data(), sizeof own);
    std::vector<int> members;
    for (int r = 0; r < size_; ++r)
      if (all[static_cast<std::size_t>(r)].color == color) members.push_back(r);
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
      return all[static_cast<std::size_t>(a)].key < all[static_cast<std::size_t>(b)].key;
    });
    const auto place = std::find(members.begin(), members.end(), rank_) - members.begin();
    made->prefix = str("split.", mine->number, ".", color, "/");
    for (const int r : members) made->ranks.push_back(options_.ranks[static_cast<std::size_t>(r)]);
    EngineResult result;
    made->engine = engine_->split(made->prefix, color, color < 0 ? 0 : static_cast<int>(place),
                                  color < 0 ? 0 : static_cast<int>(members.size()),
                                  {this, &Core::poll}, result);
    if (result.result == kBraidStopped) throw Stopped{};
    if (result.result != kBraidDone) throw CommError(result.text);
  };
  Work(add(std::move(call))).wait();
  if (!made->engine) return nullptr;
  CoreOptions options = options_;
  options.store = std::make_shared<PrefixStore>(options_.store, made->prefix);
  options.waits_at_end = false;
  options.ranks = made->ranks;
  options.group = options_.group + "." + made->prefix.substr(0, made->prefix.size() - 1);
  auto child = std::make_shared<Core>(std::move(made->engine), std::move(options));
  child->start();
  const std::lock_guard lock(mutex_);
  std::erase_if(children_, [](const std::weak_ptr<Core>& weak) { return weak.expired(); });
  children_.push_back(child);
  return child;
}

}  // namespace braid::parallel::process
