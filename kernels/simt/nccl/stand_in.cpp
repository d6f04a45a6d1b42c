#include "simt/nccl/stand_in.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <string_view>
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
  std::uint64_t ids = 0;
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
  std::map<Clique*, std::vector<std::size_t>> next;
  // the collective of the i-th calls of a group of ranks
  std::map<std::pair<Clique*, std::size_t>, std::size_t> at;
  for (const Part& part : parts) {
    std::vector<std::size_t>& counts = next[part.clique.get()];
    counts.resize(part.clique->devices.size());
    const auto [place, fresh] = at.try_emplace(
        {part.clique.get(), counts[static_cast<std::size_t>(part.rank)]++}, collectives.size());
    if (fresh) collectives.emplace_back();
    std::vector<Part>& own = collectives[place->second];
    own.push_back(part);
    const Part& first = own.front();
    if (first.kind != part.kind || first.count != part.count || first.type != part.type ||
        first.root != part.root)
      return fail(kInvalidUsage,
                  str(name_of(part.kind), " of rank ", part.rank, " has other arguments than ",
                      name_of(first.kind), " of rank ", first.rank));
  }
  return kSuccess;
}

/// Called when a thread's group ends. What it has started continues when its communicators are
/// polled.
Result finish_group() {
  Group done = std::exchange(group, {});
  if (done.failure != kSuccess) return done.failure;
  const auto launch = std::make_shared<Launch>();
  if (const Result result = match(done.parts, launch->collectives); result != kSuccess)
    return result;
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  bool begun = false;
  for (ncclComm& comm : all.comms) {
    if (comm.ended) continue;
    if (!comm.ready || comm.polls > 0) begun = true;
    for (const Part& part : done.parts)
      if (part.clique == comm.clique && part.rank == comm.rank)
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
  const auto clique = std::make_shared<Clique>();
  Result result = kSuccess;
  const char* const shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  const bool one_each = version() < 23000 || shared == nullptr || std::string_view(shared) != "1";
  for (const Comm rank : ranks) {
    const int device = rank->clique->devices.front();
    if (one_each && std::find(clique->devices.begin(), clique->devices.end(), device) !=
                        clique->devices.end()) {
      result = kInvalidUsage;
      all.last_error = str("Duplicate GPU detected : rank ", rank->rank, " is on device ", device,
                           ", as another one is");
    }
    clique->devices.push_back(device);
  }
  for (const Comm rank : ranks)
    rank->clique = clique, rank->failure = result, rank->ready = true, rank->polls = kPolls;
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
    return fail(kInvalidUsage, "the stand-in has non-blocking communicators only");
  {
    detail::Runtime& r = detail::runtime();
    const detail::Runtime::Lock lock(r.mutex);
    if (r.devices.empty() || r.sticky_of(detail::current_device) != cudaSuccess)
      return fail(kUnhandledCudaError, "the current device cannot be used");
  }
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  ncclComm& comm = all.comms.emplace_back();
  comm.rank = rank;
  comm.clique = std::make_shared<Clique>();
  comm.clique->devices.assign(1, detail::current_device);
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
  if (abort) comm->clique->abort();
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
  ++group.depth;
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
  if (op != 0) return fail(kInvalidArgument, "the stand-in adds only");
  std::shared_ptr<Clique> clique;
  {
    Library& all = library();
    const std::lock_guard lock(all.mutex);
    if (!comm->ready || comm->finalised || comm->failure != kSuccess || comm->polls > 0)
      return group.depth > 0 ? (group.failure = kInvalidUsage) : kInvalidUsage;
    clique = comm->clique;
  }
  const Part part{kind, clique, comm->rank, send, recv, count, type, root, stream};
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

template <class F> Function plain(F* function) { return reinterpret_cast<Function>(function); }

}  // namespace

Function find(const char* name) noexcept {
  const struct {
    const char* name;
    Function function;
  } all[] = {{"ncclGetVersion", plain(get_version)},
             {"ncclGetUniqueId", plain(get_unique_id)},
             {"ncclGetLastError", plain(get_last_error)},
             {"ncclCommInitRankConfig", plain(comm_init_rank_config)},
             {"ncclCommGetAsyncError", plain(comm_get_async_error)},
             {"ncclCommFinalize", plain(comm_finalize)},
             {"ncclCommDestroy", plain(comm_destroy)},
             {"ncclCommAbort", plain(comm_abort)},
             {"ncclGroupStart", plain(group_start)},
             {"ncclGroupEnd", plain(group_end)},
             {"ncclBroadcast", plain(broadcast)},
             {"ncclReduce", plain(reduce)},
             {"ncclAllReduce", plain(all_reduce)},
             {"ncclAllGather", plain(all_gather)},
             {"ncclReduceScatter", plain(reduce_scatter)}};
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
