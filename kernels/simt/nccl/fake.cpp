#include "simt/nccl/fake.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <braid/core/error.hpp>

#include "simt/nccl/comm.hpp"
#include "simt/nccl/faults.hpp"
#include "simt/runtime/state.hpp"

namespace braid::simt::nccl {
namespace {

using Comm = ncclComm*;
using Id = std::array<char, 128>;

struct UniqueId {
  char internal[128];
};
struct Config {  // the fields that all versions from 2.17 on have
  std::size_t size;
  unsigned int magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char* net_name;
};

struct Library {
  std::mutex mutex;
  std::list<ncclComm> comms;                  // ended ones stay, to detect a late use
  std::map<Id, std::vector<Comm>> gathering;  // by id: the ranks that have arrived, until all have
  std::uint64_t ids = 0, groups = 0;
  std::map<std::shared_ptr<RankGroup>, std::list<Open>> open;  // of ranks that are apart
  std::string last_error;
};

// Never destroyed: communicators may outlive static objects.
Library& library() {
  static Library& the_one = *new Library;
  return the_one;
}

/// The state of a thread between ncclGroupStart and ncclGroupEnd.
struct Group {
  int depth = 0;
  std::uint64_t serial = 0;
  Result failure = kSuccess;
  std::vector<Part> parts;
};
thread_local Group group;

/// In a group, ncclGroupEnd returns the first failure.
Result fail(Result result, std::string text) {
  Library& all = library();
  {
    const std::lock_guard lock(all.mutex);
    all.last_error = std::move(text);
  }
  if (group.depth > 0 && group.failure == kSuccess) group.failure = result;
  return result;
}

bool usable(Comm comm, const char* function) {
  Library& all = library();
  bool known = false;
  {
    const std::lock_guard lock(all.mutex);
    for (const ncclComm& each : all.comms) known = known || (&each == comm && !each.ended);
  }
  if (!known) misuse(str(function, " of a communicator that has ended or never was"));
  return known;
}

/// Collects the collectives of a group, each with the ranks that take part. Returns
/// ncclInvalidUsage if the ranks' calls do not match.
Result match(const std::vector<Part>& parts, std::vector<std::vector<Part>>& collectives) {
  // by rank: the number of its calls so far
  std::map<RankGroup*, std::vector<std::size_t>> next;
  // the collective of the i-th calls of a group of ranks
  std::map<std::pair<RankGroup*, std::size_t>, std::size_t> at;
  // the same of sends and receives, by the ranks from and to, which are matched in pairs
  std::map<std::tuple<RankGroup*, int, int, Kind>, std::size_t> next_of_pair;
  std::map<std::tuple<RankGroup*, int, int, std::size_t>, std::size_t> pairs;
  for (const Part& part : parts) {
    if (part.pairs()) {
      const bool sends = part.kind == Kind::send;
      RankGroup* const ranks = part.rank_group.get();
      const int from = sends ? part.rank : part.root, to = sends ? part.root : part.rank;
      const auto [place, fresh] = pairs.try_emplace(
          {ranks, from, to, next_of_pair[{ranks, from, to, part.kind}]++}, collectives.size());
      if (fresh) collectives.emplace_back();
      std::vector<Part>& pair = collectives[place->second];
      pair.push_back(part);
      if (pair.front().count != part.count || pair.front().type != part.type)
        return fail(kInvalidUsage, str("ncclRecv of rank ", to,
                                       " has other arguments than ncclSend of rank ", from));
      continue;
    }
    std::vector<std::size_t>& counts = next[part.rank_group.get()];
    counts.resize(part.rank_group->devices.size());
    const auto [place, fresh] = at.try_emplace(
        {part.rank_group.get(), counts[static_cast<std::size_t>(part.rank)]++}, collectives.size());
    if (fresh) collectives.emplace_back();
    std::vector<Part>& own = collectives[place->second];
    own.push_back(part);
    const Part& first = own.front();
    if (first.kind != part.kind || first.count != part.count || first.type != part.type ||
        first.root != part.root || first.op != part.op)
      return fail(kInvalidUsage,
                  str(name_of(part.kind), " of rank ", part.rank, " has other arguments than ",
                      name_of(first.kind), " of rank ", first.rank));
  }
  return kSuccess;
}

/// Adds a part to the collectives of ranks that are apart. Under the lock. False if it differs from
/// those of the other ranks.
bool open_part(Library& all, ncclComm& comm, const Part& part) {
  const bool sends = part.kind == Kind::send;
  const int from = sends ? part.rank : part.root, to = sends ? part.root : part.rank;
  const std::uint64_t index =
      part.pairs() ? comm.pairs[{part.root, part.kind}]++ : comm.collectives++;
  std::list<Open>& list = all.open[part.rank_group];
  const auto same = [&](const Open& each) {
    const bool pairs = each.kind == Kind::send;
    return pairs == part.pairs() && each.index == index &&
           (!pairs || (each.from == from && each.to == to));
  };
  auto place = std::find_if(list.begin(), list.end(), same);
  if (place == list.end())
    place = list.insert(list.end(), {part.pairs() ? Kind::send : part.kind, index, from, to, {}});
  comm.polls = kPolls;
  ++comm.open;
  place->parts.push_back(part);
  const Part& first = place->parts.front();
  return first.count == part.count && first.type == part.type && first.op == part.op &&
         (part.pairs() || (first.kind == part.kind && first.root == part.root));
}

/// Takes the parts of ranks that are apart. Ranks whose calls differ get an error; in NCCL they
/// hang, or overwrite memory.
Result open_parts(std::vector<Part>& parts) {
  Library& all = library();
  bool fits = true;
  {
    const std::lock_guard lock(all.mutex);
    for (const Part& part : parts)
      for (ncclComm& comm : all.comms)
        if (part.rank_group->apart && !comm.ended && comm.rank_group == part.rank_group &&
            comm.rank == part.rank)
          fits = open_part(all, comm, part) && fits;
  }
  std::erase_if(parts, [](const Part& part) { return part.rank_group->apart; });
  return fits ? kSuccess : fail(kInvalidUsage, "the calls of ranks differ");
}

/// Puts on the streams what has the parts of all its ranks. Its ranks are in progress until then.
void close_parts(const std::shared_ptr<RankGroup>& rank_group) {
  Library& all = library();
  std::list<Open> complete;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.open.find(rank_group);
    if (found == all.open.end()) return;
    std::list<Open>& list = found->second;
    for (auto each = list.begin(); each != list.end();) {
      const std::size_t expected = each->kind == Kind::send ? 2 : rank_group->devices.size();
      const auto next = std::next(each);
      if (!each->dead && each->parts.size() == expected)
        complete.splice(complete.end(), list, each);
      each = next;
    }
    if (list.empty()) all.open.erase(found);
  }
  for (const Open& each : complete) enqueue(each.parts, take_stall(), sum_order());
  const std::lock_guard lock(all.mutex);
  for (const Open& each : complete)
    for (const Part& part : each.parts)
      for (ncclComm& comm : all.comms)
        if (comm.rank_group == rank_group && comm.rank == part.rank) --comm.open;
}

/// Called when a thread's group ends. What it has started continues when its communicators are
/// polled.
Result finish_group() {
  Group done = std::exchange(group, {});
  if (done.failure != kSuccess) return done.failure;
  if (const Result result = open_parts(done.parts); result != kSuccess) return result;
  const auto launch = std::make_shared<Launch>();
  if (const Result result = match(done.parts, launch->collectives); result != kSuccess)
    return result;
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  bool begun = false;
  for (ncclComm& comm : all.comms) {
    if (comm.ended) continue;
    if (!comm.ready || comm.polls > 0 || comm.open > 0) begun = true;
    for (const Part& part : done.parts)
      if (part.rank_group == comm.rank_group && part.rank == comm.rank)
        comm.launch = launch, comm.polls = kPolls, begun = true;
  }
  return begun ? kInProgress : kSuccess;
}

Result get_version(int* out) {
  const Entry entry;
  if (entry.result() != kSuccess) return fail(entry.result(), "injected");
  if (out == nullptr) return fail(kInvalidArgument, "version is null");
  *out = version();
  return kSuccess;
}

Result get_unique_id(UniqueId* id) {
  const Entry entry;
  if (entry.result() != kSuccess) return fail(entry.result(), "injected");
  if (id == nullptr) return fail(kInvalidArgument, "id is null");
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  ++all.ids;
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, &all.ids, sizeof all.ids);
  return kSuccess;
}

const char* get_last_error(Comm) {
  const Entry entry;
  static thread_local std::string text;
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  text = all.last_error;
  return text.c_str();
}

/// Called when all ranks have arrived. Makes them a group of ranks; fails if two are on one device.
void join(Library& all, std::vector<Comm>& ranks) {
  const auto rank_group = std::make_shared<RankGroup>();
  Result result = kSuccess;
  const char* const shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  const bool one_each = version() < 23000 || shared == nullptr || std::string_view(shared) != "1";
  for (const Comm rank : ranks) {
    const int device = rank->rank_group->devices.front();
    if (one_each && std::find(rank_group->devices.begin(), rank_group->devices.end(), device) !=
                        rank_group->devices.end()) {
      result = kInvalidUsage;
      all.last_error = str("Duplicate GPU detected : rank ", rank->rank, " is on device ", device,
                           ", as another one is");
    }
    rank_group->devices.push_back(device);
  }
  rank_group->apart = std::any_of(ranks.begin(), ranks.end(), [&](const Comm rank) {
    return rank->made_in != ranks.front()->made_in;
  });
  for (const Comm rank : ranks)
    rank->rank_group = rank_group, rank->failure = result, rank->ready = true, rank->polls = kPolls;
}

Result comm_init_rank_config(Comm* out, int ranks, UniqueId id, int rank, Config* config) {
  const Entry entry;
  if (entry.result() != kSuccess) return fail(entry.result(), "injected");
  if (out == nullptr || ranks < 1 || rank < 0 || rank >= ranks)
    return fail(kInvalidArgument, str("rank ", rank, " of ", ranks));
  *out = nullptr;
  if (config == nullptr || config->magic != 0xcafebeef || config->size < sizeof(Config) ||
      config->version < 21700)
    return fail(kInvalidArgument,
                "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
  if (config->blocking != 0)
    return fail(kInvalidUsage, "the fake NCCL has non-blocking communicators only");
  {
    detail::Runtime& r = detail::runtime();
    const detail::Runtime::Lock lock(r.mutex);
    if (r.device_count() == 0 || r.reports.sticky_of(detail::current_device) != cudaSuccess)
      return fail(kUnhandledCudaError, "the current device cannot be used");
  }
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  ncclComm& comm = all.comms.emplace_back();
  comm.rank = rank;
  comm.made_in = group.depth > 0 ? group.serial : ++all.groups;
  comm.rank_group = std::make_shared<RankGroup>();
  comm.rank_group->devices.assign(1, detail::current_device);
  *out = &comm;
  Id key;
  std::memcpy(key.data(), id.internal, key.size());
  std::vector<Comm>& there = all.gathering[key];
  there.resize(static_cast<std::size_t>(ranks), nullptr);
  there[static_cast<std::size_t>(rank)] = &comm;
  if (std::find(there.begin(), there.end(), nullptr) == there.end()) {
    join(all, there);
    all.gathering.erase(key);
  }
  return kInProgress;
}

Result comm_get_async_error(Comm comm, Result* out) {
  const Entry entry(comm);
  if (entry.result() != kSuccess) return fail(entry.result(), "injected");
  if (!usable(comm, "ncclCommGetAsyncError") || out == nullptr)
    return fail(kInvalidArgument, "no communicator");
  if (answers_remote_error()) {
    *out = kRemoteError;
    return kSuccess;
  }
  *out = kInProgress;
  if (answers_in_progress()) return kSuccess;
  std::shared_ptr<Launch> launch;
  {
    Library& all = library();
    const std::lock_guard lock(all.mutex);
    if (!comm->ready || comm->polls-- > 0) return kSuccess;
    comm->polls = 0;
    launch = std::exchange(comm->launch, nullptr);
    if (launch)
      for (ncclComm& other : all.comms)
        if (other.launch == launch) other.launch = nullptr, other.polls = 0;
    *out = comm->failure;
  }
  if (launch)
    for (const std::vector<Part>& parts : launch->collectives)
      enqueue(parts, take_stall(), sum_order());
  if (comm->rank_group->apart) {
    close_parts(comm->rank_group);
    const std::lock_guard lock(library().mutex);
    if (comm->open > 0) *out = kInProgress;
  }
  return kSuccess;
}

Result comm_finalize(Comm comm) {
  const Entry entry(comm);
  if (entry.result() != kSuccess) return fail(entry.result(), "injected");
  if (!usable(comm, "ncclCommFinalize")) return fail(kInvalidArgument, "no communicator");
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  comm->finalised = true;
  comm->polls = kPolls;
  return kInProgress;
}

Result end(Comm comm, const char* function, bool abort) {
  if (!usable(comm, function)) return fail(kInvalidArgument, "no communicator");
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  comm->ended = true;
  comm->launch = nullptr;
  if (abort) comm->rank_group->abort(comm->ready ? comm->rank : 0);
  for (auto& [id, ranks] : all.gathering) std::replace(ranks.begin(), ranks.end(), comm, Comm());
  if (const auto found = all.open.find(comm->rank_group); found != all.open.end())
    for (Open& each : found->second)
      for (const Part& part : each.parts) each.dead = each.dead || part.rank == comm->rank;
  return kSuccess;
}

Result comm_destroy(Comm comm) {
  const Entry entry(comm);
  if (entry.result() != kSuccess) return fail(entry.result(), "injected");
  return end(comm, "ncclCommDestroy", false);
}

Result comm_abort(Comm comm) {
  const Entry entry;  // may be called from any thread
  const Result result = end(comm, "ncclCommAbort", true);
  hang_after_abort();
  return entry.result() != kSuccess ? entry.result() : result;
}

Result group_start() {
  const Entry entry;
  if (entry.result() != kSuccess) return entry.result();
  if (group.depth++ == 0) {
    Library& all = library();
    const std::lock_guard lock(all.mutex);
    group.serial = ++all.groups;
  }
  return kSuccess;
}

Result group_end() {
  const Entry entry;
  if (group.depth == 0) return fail(kInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (entry.result() != kSuccess && group.failure == kSuccess) group.failure = entry.result();
  return --group.depth > 0 ? kSuccess : finish_group();
}

Result collective(Kind kind, const void* send, void* recv, std::size_t count, int type, int op,
                  int root, Comm comm, cudaStream_t stream) {
  const Entry entry(comm);
  if (entry.result() != kSuccess) return fail(entry.result(), "injected");
  if (!usable(comm, name_of(kind))) return fail(kInvalidArgument, "no communicator");
  if (op < 0 || op > 3) return fail(kInvalidArgument, "the fake NCCL has sum, prod, max and min");
  std::shared_ptr<RankGroup> rank_group;
  {
    Library& all = library();
    const std::lock_guard lock(all.mutex);
    if (!comm->ready || comm->finalised || comm->failure != kSuccess || comm->polls > 0 ||
        comm->open > 0)
      return group.depth > 0 ? (group.failure = kInvalidUsage) : kInvalidUsage;
    rank_group = comm->rank_group;
  }
  const Part part{kind, rank_group, comm->rank, send, recv, count, type, op, root, stream};
  if (const Result result = check(part); result != kSuccess)
    return fail(result, str(name_of(kind), ": expected memory and a stream of the rank's device"));
  group.parts.push_back(part);
  return group.depth > 0 ? kSuccess : finish_group();
}

Result broadcast(const void* send, void* recv, std::size_t count, int type, int root, Comm comm,
                 cudaStream_t stream) {
  return collective(Kind::broadcast, send, recv, count, type, 0, root, comm, stream);
}
Result reduce(const void* send, void* recv, std::size_t count, int type, int op, int root,
              Comm comm, cudaStream_t stream) {
  return collective(Kind::reduce, send, recv, count, type, op, root, comm, stream);
}
Result all_reduce(const void* send, void* recv, std::size_t count, int type, int op, Comm comm,
                  cudaStream_t stream) {
  return collective(Kind::all_reduce, send, recv, count, type, op, 0, comm, stream);
}
Result all_gather(const void* send, void* recv, std::size_t count, int type, Comm comm,
                  cudaStream_t stream) {
  return collective(Kind::all_gather, send, recv, count, type, 0, 0, comm, stream);
}
Result reduce_scatter(const void* send, void* recv, std::size_t count, int type, int op, Comm comm,
                      cudaStream_t stream) {
  return collective(Kind::reduce_scatter, send, recv, count, type, op, 0, comm, stream);
}

Result send(const void* data, std::size_t count, int type, int peer, Comm comm,
            cudaStream_t stream) {
  return collective(Kind::send, data, nullptr, count, type, 0, peer, comm, stream);
}
Result recv(void* data, std::size_t count, int type, int peer, Comm comm, cudaStream_t stream) {
  return collective(Kind::recv, nullptr, data, count, type, 0, peer, comm, stream);
}

template <class F> Function plain(F* function) { return reinterpret_cast<Function>(function); }

}  // namespace

Function find(const char* name) noexcept {
  const struct {
    const char* name;
    Function function;
  } all[] = {
#define BRAID_NCCL(member, name, Result, parameters) {#name, plain(member)},
#include <braid/core/internal/nccl_functions.def>
  };
  for (const auto& entry : all)
    if (std::string_view(entry.name) == name) return entry.function;
  return nullptr;
}

int alive() {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  int count = 0;
  for (const ncclComm& comm : all.comms) count += !comm.ended;
  return count;
}

}  // namespace braid::simt::nccl
