#include <braid/core/error.hpp>

#include <map>

#include "simt/cuda_runtime.hpp"
#include "simt/runtime/state.hpp"

using namespace braid::simt;
using braid::str;
using detail::GraphInstance;
using detail::OpPtr;
using detail::Runtime;

namespace {

// Returns the object of a handle. Makes a report and returns null if there is none.
template <class M>
typename M::mapped_type find(Runtime& r, M& all, const void* handle, const char* call,
                             const char* what, Location where) {
  const auto found = all.find(reinterpret_cast<std::uintptr_t>(handle));
  if (found != all.end()) return found->second;
  r.reports.add(ReportKind::destroyed_handle, detail::current_device, where, {},
                str(call, " at ", detail::describe(where), ": expected ", what,
                    ", got a handle that is none"));
  return nullptr;
}

// Queues copies of the graph's operations. Under the lock.
void queue(Runtime& r, GraphInstance& instance, detail::StreamState& stream, Location where) {
  std::map<const detail::Op*, OpPtr> copies;
  const OpPtr begin = r.enqueue(stream, detail::OpKind::wait, "cudaGraphLaunch", where, nullptr,
                                instance.last ? std::vector{instance.last} : std::vector<OpPtr>{});
  for (const OpPtr& recorded : instance.graph->ops) {
    std::vector<OpPtr> needs;
    for (const OpPtr& need : recorded->needs) needs.push_back(copies.at(need.get()));
    detail::StreamState& target =
        recorded->slot == 0 ? stream : *instance.branches[recorded->slot - 1];
    // an operation of another stream that waits for nothing still comes after the launch
    if (recorded->slot != 0 && needs.empty()) needs.push_back(begin);
    const OpPtr op = r.enqueue(target, recorded->kind, recorded->call, recorded->where,
                               recorded->run, std::move(needs));
    op->kernel = recorded->kernel;
    op->body = recorded->body;
    if (recorded->queued) recorded->queued(op);
    copies[recorded.get()] = op;
  }
  instance.last = r.enqueue(stream, detail::OpKind::record, "cudaGraphLaunch", where, nullptr);
}

}  // namespace

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* handle, cudaGraph_t graph,
                                 unsigned long long flags, Location where) {
  return detail::runtime_call("cudaGraphInstantiate", [&](Runtime& r) {
    if (!handle || flags != 0) return cudaErrorInvalidValue;
    const Runtime::Lock lock(r.mutex);
    const auto found = find(r, r.captures.graphs, graph, "cudaGraphInstantiate", "a graph", where);
    if (!found) return cudaErrorInvalidValue;
    auto made = std::make_shared<GraphInstance>();
    made->graph = found, made->created = where;
    for (std::size_t slot = 1; slot < found->slots; ++slot) {
      int device = detail::current_device;
      for (const OpPtr& op : found->ops)
        if (op->slot == slot) device = op->device;
      detail::StreamPtr branch = r.streams.make(device, cudaStreamNonBlocking, 0, found->captured);
      branch->number = r.streams.next_stream++, branch->of_user = false;
      r.streams.by_number[branch->number] = branch;
      made->branches.push_back(std::move(branch));
    }
    *handle = reinterpret_cast<cudaGraphExec_t>(static_cast<std::uintptr_t>(r.captures.next));
    r.captures.instances[r.captures.next++] = std::move(made);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t handle, Location where) {
  return detail::runtime_call("cudaGraphLaunch", [&](Runtime& r) {
    {
      const Runtime::Lock lock(r.mutex);
      const auto found = find(r, r.captures.instances, instance, "cudaGraphLaunch",
                              "an instance of a graph", where);
      if (!found) return cudaErrorInvalidValue;
      const auto stream = r.find_stream(handle, "cudaGraphLaunch", where);
      if (!stream) return cudaErrorInvalidResourceHandle;
      // a graph within a graph is not emulated
      if (const cudaError_t error = r.forbidden_wait(*stream); error != cudaSuccess) return error;
      queue(r, *found, *stream, where);
    }
    r.settle();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance, Location where) {
  return detail::release_call("cudaGraphExecDestroy", [&](Runtime& r) {
    const Runtime::Lock lock(r.mutex);
    const auto found = find(r, r.captures.instances, instance, "cudaGraphExecDestroy",
                            "an instance of a graph", where);
    if (!found) return cudaErrorInvalidValue;
    for (const detail::StreamPtr& branch : found->branches)
      branch->alive = false, branch->destroyed = where;  // queued operations still run
    r.captures.instances.erase(reinterpret_cast<std::uintptr_t>(instance));
    r.streams.sweep();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph, Location where) {
  return detail::release_call("cudaGraphDestroy", [&](Runtime& r) {
    const Runtime::Lock lock(r.mutex);
    if (!find(r, r.captures.graphs, graph, "cudaGraphDestroy", "a graph", where))
      return cudaErrorInvalidValue;
    r.captures.graphs.erase(reinterpret_cast<std::uintptr_t>(graph));
    return cudaSuccess;
  });
}
