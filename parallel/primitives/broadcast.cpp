#include "primitives/broadcast.hpp"

#include <algorithm>

#include <braid/core/autograd.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/gradient_sink.hpp>
#include <braid/core/stream.hpp>
#include <braid/core/trace.hpp>
#include <braid/parallel/communicator.hpp>

#include "communicator/deferred_wait.hpp"
#include "communicator/local.hpp"
#include "primitives/copy_streams.hpp"
#include "primitives/replica_cache.hpp"
#include "primitives/views.hpp"
#include "workers.hpp"

namespace braid::parallel {
namespace {

/// Returns another tensor object on the same storage. If it gets a graph, it is one of several
/// results of an op, so that it cannot be changed in place. Buffers may be changed in place.
Tensor alias(const Tensor& t, bool recorded) {
  Tensor y = make_tensor_on(t.storage(), t.shape(), t.strides(), t.storage_offset(), t.dtype());
  if (recorded) y.id()->view_kind = ViewKind::many;
  return y;
}

/// The tensors that share one buffer, and their offsets in it.
struct Bucket {
  static constexpr std::size_t kAlign = 64;
  DType dtype;
  std::size_t bytes = 0;
  std::vector<std::size_t> tensors, offsets;
  void add(std::size_t tensor, std::size_t its_bytes) {
    tensors.push_back(tensor);
    offsets.push_back(bytes);
    bytes += (its_bytes + kAlign - 1) / kAlign * kAlign;
  }
  /// Returns its i-th tensor in a buffer of this layout.
  [[nodiscard]] Tensor place(const Ref<Storage>& whole, std::size_t i, const Tensor& like) const {
    return make_tensor_on(Storage::slice(whole, offsets[i], bytes_of(like)), like.shape(),
                          contiguous_strides(like.shape()), 0, dtype);
  }
};

std::vector<Bucket> buckets_for(std::span<const Tensor> tensors,
                                const std::vector<std::size_t>& which, std::size_t most) {
  std::vector<Bucket> buckets;
  std::size_t open[kDTypeCount];  // 1 + the bucket for the next tensor of a dtype
  std::fill(std::begin(open), std::end(open), 0);
  for (const std::size_t k : which) {
    const std::size_t bytes = bytes_of(tensors[k]);
    std::size_t& at = open[static_cast<std::size_t>(tensors[k].dtype())];
    if (bytes > most) {
      buckets.push_back({tensors[k].dtype(), bytes, {k}, {0}});
      continue;
    }
    if (!at || buckets[at - 1].bytes + bytes > most) {
      buckets.push_back({tensors[k].dtype(), 0, {}, {}});
      at = buckets.size();
    }
    buckets[at - 1].add(k, bytes);
  }
  return buckets;
}

/// Puts the tensors on ranks 1, 2, …. Uses the cached copy if it is valid, else the cached memory
/// if it is free, else new flat buffers.
void copy_to_ranks(std::span<const Tensor> tensors, const std::vector<bool>& recorded,
                   std::span<const Device> devices, const Broadcast& how,
                   std::vector<std::vector<Tensor>>& copies) {
  ReplicaCache* const cache = how.cache;
  const std::size_t ranks = devices.size(), count = tensors.size();
  trace::GroupSpan span(how.traced.name, how.traced.phase, devices);
  std::vector<Tensor> sources(tensors.begin(), tensors.end());
  const auto place = [&](std::size_t k, std::size_t rank, const Ref<Storage>& storage) {
    copies[rank][k] = make_tensor_on(storage, sources[k].shape(),
                                     contiguous_strides(sources[k].shape()), 0, sources[k].dtype());
  };
  if (cache) cache->prepare(devices, count);
  ReplicateBytes bytes_sent;
  // A replica may write a tensor without a graph in place. Therefore a copy that an earlier graph
  // still holds is not used again.
  const auto there_already = [&](std::size_t k, std::size_t rank) {
    return cache && cache->good(k, rank, tensors[k]) &&
           (recorded[k] || cache->reusable(k, rank, bytes_of(tensors[k])));
  };
  // A collective writes on every rank. A rank with a good copy is written too if another rank has
  // none, and loses it if the call fails half way.
  std::vector<bool> moves(count);
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t rank = 1; rank < ranks; ++rank) moves[k] = moves[k] || !there_already(k, rank);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    std::vector<std::size_t> fresh;  // copies that need new memory
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t bytes = bytes_of(tensors[k]);
      if (!moves[k]) {
        place(k, rank, cache->memory(k, rank));
        bytes_sent.cached += bytes;
        span.add_bytes(rank, 0, bytes, bytes);
        continue;
      }
      span.add_bytes(rank, bytes, 0, cache ? bytes : 0);
      const Ref<Storage> free = cache ? cache->reusable(k, rank, bytes) : Ref<Storage>();
      if (free) place(k, rank, free);
      else fresh.push_back(k);
      if (cache) cache->forget(k, rank), bytes_sent.copied += bytes;
    }
    for (const Bucket& bucket : buckets_for(tensors, fresh, how.bucket_bytes)) {
      const Ref<Storage> whole = Storage::allocate(bucket.bytes, devices[rank]);
      for (std::size_t i = 0; i < bucket.tensors.size(); ++i)
        copies[rank][bucket.tensors[i]] = bucket.place(whole, i, sources[bucket.tensors[i]]);
    }
  }
  std::vector<BufferView> views;
  for (std::size_t k = 0; k < count; ++k) {
    if (!moves[k]) continue;
    sources[k] = tensors[k].contiguous();
    views.push_back(view_of(sources[k]));
    for (std::size_t rank = 1; rank < ranks; ++rank) views.push_back(view_of(copies[rank][k]));
  }
  if (!views.empty()) communicator_over(devices)->broadcast(views);
  if (!cache) return;
  cache->note(bytes_sent);
  for (std::size_t rank = 1; rank < ranks; ++rank)
    for (std::size_t k = 0; k < count; ++k)
      if (moves[k]) cache->keep(k, rank, tensors[k], copies[rank][k].storage());
}

/// Records the copies of some tensors as one op.
template <class F>
autograd::Node& record_copies(std::span<const Tensor> tensors,
                              const std::vector<std::size_t>& which,
                              const std::vector<std::vector<Tensor>>& copies, Device device, F f) {
  std::vector<Tensor> inputs, outputs;
  for (const std::size_t k : which) inputs.push_back(tensors[k]);
  for (const std::vector<Tensor>& rank : copies)
    for (const std::size_t k : which) outputs.push_back(rank[k]);
  record_many("broadcast", inputs, outputs, device, std::move(f));
  return *outputs.front().id()->grad_fn;
}

/// Stream guards of several devices. They end in reverse order, also after an exception.
class StreamGuards {
 public:
  StreamGuards() = default;
  StreamGuards(const StreamGuards&) = delete;
  StreamGuards& operator=(const StreamGuards&) = delete;
  ~StreamGuards() {
    while (!guards_.empty()) guards_.pop_back();
  }
  void add(const std::shared_ptr<Stream>& stream) {
    guards_.push_back(std::make_unique<StreamGuard>(stream));
  }

 private:
  std::vector<std::unique_ptr<StreamGuard>> guards_;
};

/// Sums several gradients of one dtype as one item of a collective: concatenated in a flat buffer
/// per rank, with zeros where a rank has no gradient. The sums are in rank 0's buffer. Returns
/// false and does nothing if the dtypes differ, or if there are fewer than two gradients or no
/// bytes.
bool reduce_flat(std::span<const Tensor> parts, std::span<const Device> devices,
                 std::vector<Tensor>& sums) {
  const std::size_t ranks = devices.size(), count = sums.size();
  Bucket bucket{};
  std::vector<const Tensor*> like;
  bool whole_lines = true;
  for (std::size_t k = 0; k < count; ++k) {
    std::size_t rank = 0, defined = 0;
    for (std::size_t r = ranks; r-- > 0;)
      if (parts[r * count + k].defined()) rank = r, ++defined;
    if (defined == 0) continue;  // not used by any rank: no gradient
    like.push_back(&parts[rank * count + k]);
    whole_lines = whole_lines && defined == ranks && bytes_of(*like.back()) % Bucket::kAlign == 0;
    if (like.front()->dtype() != like.back()->dtype()) return false;
    bucket.dtype = like.back()->dtype();
    bucket.add(k, bytes_of(*like.back()));
  }
  if (like.size() < 2 || !bucket.bytes) return false;
  trace::GroupSpan span("reduce", phase::reduce, devices);
  std::vector<Tensor> flats;
  std::vector<BufferView> views;
  const Shape shape{static_cast<std::int64_t>(bucket.bytes / size_of(bucket.dtype))};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Ref<Storage> whole = Storage::allocate(bucket.bytes, devices[rank]);
    flats.push_back(make_tensor_on(whole, shape, contiguous_strides(shape), 0, bucket.dtype));
    if (!whole_lines) flats.back().zero_();  // bytes that no tensor fills are added too
    for (std::size_t i = 0; i < like.size(); ++i) {
      const std::size_t k = bucket.tensors[i];
      const Tensor place = bucket.place(whole, i, *like[i]);
      if (rank == 0) sums[k] = place;
      if (!parts[rank * count + k].defined()) continue;
      place.copy_(parts[rank * count + k]);
      if (rank) span.add_bytes(rank, bytes_of(place));
    }
    views.push_back(view_of(flats.back()));
  }
  communicator_over(devices)->reduce(views, {views.data(), 1});
  return true;
}

/// Runs reduce_tensors on the devices' communication streams, and queues its work only. At the end
/// of backward the current streams wait for them. There the host waits for NCCL too, so that an
/// error or a hang is thrown before a gradient is added (docs/decisions/0008).
std::vector<Tensor> reduce_asynchronously(std::span<const Tensor> parts,
                                          std::span<const Device> devices, bool fixed) {
  const std::vector<Device> group = distinct(devices);
  std::vector<Stream*> computing;  // kept alive in this backward by a guard or the device
  std::vector<Tensor> sums;
  {
    StreamGuards guards;
    for (const Device d : group) {
      computing.push_back(&current_stream(d));
      const std::shared_ptr<Stream>& beside = communication_stream(d);
      beside->wait_for(*computing.back());
      guards.add(beside);
    }
    for (const Tensor& part : parts)
      if (part.defined()) record_stream(part, current_stream(part.device()));
    const DeferredWait queued;
    sums = reduce_tensors(parts, devices, fixed);
  }
  for (const Tensor& sum : sums)
    if (sum.defined()) record_stream(sum, *computing.front());
  const std::shared_ptr<Communicator> communicator =
      fixed || group.size() != devices.size() ? nullptr : communicator_over(group);
  at_end_of_backward([group, computing, communicator] {
    for (std::size_t i = 0; i < group.size(); ++i)
      computing[i]->wait_for(*communication_stream(group[i]));
    if (communicator) communicator->wait();
  });
  return sums;
}

}  // namespace

bool all_asynchronous(std::span<const Device> devices) {
  return std::none_of(devices.begin(), devices.end(),
                      [](Device d) { return device_context(d).host_memory; });
}

std::vector<std::vector<Tensor>> broadcast_tensors(std::span<const Tensor> tensors,
                                                   std::span<const Device> devices,
                                                   const Broadcast& how) {
  const std::size_t ranks = devices.size(), count = tensors.size();
  std::vector<std::vector<Tensor>> copies(ranks, std::vector<Tensor>(count));
  std::vector<std::size_t> which;  // are recorded
  std::vector<bool> recorded(count);
  for (std::size_t k = 0; k < count; ++k) {
    recorded[k] = needs_grad({tensors[k]});
    if (recorded[k]) which.push_back(k);
  }
  {
    const NoGrad guard;  // recorded below
    const std::vector<Device> places = distinct(devices);
    std::vector<std::vector<Tensor>> there(places.size(), std::vector<Tensor>(count));
    for (std::size_t k = 0; k < count; ++k) there[0][k] = alias(tensors[k], recorded[k]);
    if (places.size() > 1) copy_to_ranks(tensors, recorded, places, how, there);
    // The first rank of a device moves the copies out, so it is handled last.
    for (std::size_t rank = ranks; rank-- > 0;) {
      const auto place = static_cast<std::size_t>(
          std::find(places.begin(), places.end(), devices[rank]) - places.begin());
      const bool first = std::find(devices.begin(), devices.end(), devices[rank]) ==
                         devices.begin() + static_cast<std::ptrdiff_t>(rank);
      for (std::size_t k = 0; k < count; ++k)
        copies[rank][k] = first ? std::move(there[place][k]) : alias(there[place][k], recorded[k]);
    }
  }
  if (which.empty()) return copies;
  const std::vector<Device> group(devices.begin(), devices.end());
  const auto originals = [&](const std::vector<std::size_t>& of) {
    std::vector<Tensor> list;
    if (how.take)
      for (const std::size_t k : of) list.push_back(tensors[k]);
    return list;
  };
  if (ranks == 1 || !all_asynchronous(group)) {
    record_copies(tensors, which, copies, devices[0],
                  [group, fixed = how.fixed, take = how.take,
                   of = originals(which)](std::span<const Tensor> dys) {
                    if (take && take(of, dys, group)) return Grads(std::vector<Tensor>(of.size()));
                    return Grads(reduce_tensors(dys, group, fixed));
                  });
    return copies;
  }
  for (const Bucket& bucket : buckets_for(tensors, which, how.bucket_bytes)) {
    const bool leaves = std::all_of(bucket.tensors.begin(), bucket.tensors.end(),
                                    [&](std::size_t k) { return tensors[k].is_leaf(); });
    const bool at_end =
        leaves && std::none_of(bucket.tensors.begin(), bucket.tensors.end(),
                               [&](std::size_t k) { return gradient_sink(tensors[k]); });
    autograd::Node& node = record_copies(
        tensors, bucket.tensors, copies, devices[0],
        [group, at_end, fixed = how.fixed, take = how.take,
         of = originals(bucket.tensors)](std::span<const Tensor> dys) {
          if (take && take(of, dys, group)) return Grads(std::vector<Tensor>(of.size()));
          // After a leaf comes only the end of backward. A gradient of the sum, another node or
          // what takes a leaf's gradient during backward needs the sum in stream order.
          return Grads(at_end && !grad_enabled() ? reduce_asynchronously(dys, group, fixed)
                                                 : reduce_tensors(dys, group, fixed));
        });
    if (leaves) node.prioritize();
  }
  return copies;
}

std::vector<Tensor> reduce_tensors(std::span<const Tensor> parts, std::span<const Device> devices,
                                   bool fixed) {
  const std::size_t ranks = devices.size(), count = parts.size() / ranks;
  std::vector<Tensor> sums(count);
  const bool recording = grad_enabled();
  // Otherwise the order of the additions is fixed here.
  const bool by_communicator = !fixed && distinct(devices).size() == ranks;
  bool needed = false;
  if (const NoGrad guard; recording || !by_communicator || !all_asynchronous(devices) ||
                          !reduce_flat(parts, devices, sums)) {
    trace::GroupSpan span("reduce", phase::reduce, devices);
    std::vector<Tensor> dense(parts.size());
    std::vector<BufferView> buffers, results;
    for (std::size_t k = 0; k < count; ++k) {
      const Tensor* any = nullptr;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const Tensor& part = parts[rank * count + k];
        if (!part.defined()) continue;
        any = &part;
        needed = needed || (recording && part.requires_grad());
        dense[rank * count + k] = part.contiguous();
        if (devices[rank] != devices[0]) span.add_bytes(rank, bytes_of(part));
      }
      if (!any) continue;  // not used by any rank: no gradient
      const Tensor& own = parts[k];
      const bool free =
          // only parts and dense hold it
          !recording && own.defined() && own.id()->references() == 2 &&
          own.storage()->references() == 1 && own.is_contiguous();
      sums[k] = free ? own : make_tensor(any->shape(), any->dtype(), devices[0]);
      for (std::size_t rank = 0; rank < ranks; ++rank)
        buffers.push_back(dense[rank * count + k].defined() ? view_of(dense[rank * count + k])
                                                            : BufferView{});
      results.push_back(view_of(sums[k]));
    }
    if (by_communicator) communicator_over(devices)->reduce(buffers, results);
    else LocalCommunicator({devices.begin(), devices.end()}).reduce(buffers, results);
  }
  for (const Tensor& sum : sums)
    if (sum.defined()) sum.storage()->bump_version();
  if (!needed) return sums;
  record_many("reduce", parts, sums, devices[0],
              [group = std::vector<Device>(devices.begin(), devices.end()),
               fixed](std::span<const Tensor> dys) {
                std::vector<Tensor> defined;
                for (const Tensor& dy : dys)
                  if (dy.defined()) defined.push_back(dy);
                std::vector<Tensor> grads(dys.size() * group.size());
                const std::vector<std::vector<Tensor>> copies =
                    broadcast_tensors(defined, group, {.fixed = fixed});
                for (std::size_t rank = 0; rank < group.size(); ++rank)
                  for (std::size_t k = 0, at = 0; k < dys.size(); ++k)
                    if (dys[k].defined()) grads[rank * dys.size() + k] = copies[rank][at++];
                return Grads(std::move(grads));
              });
  return sums;
}

}  // namespace braid::parallel
