#include "primitives/replica_cache.hpp"

#include <braid/core/stream.hpp>

namespace braid::parallel {

void ReplicaCache::prepare(std::span<const Device> devices, std::size_t tensors) {
  if (ranks_.size() < devices.size()) ranks_.resize(devices.size());
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const Stream* const stream = &current_stream(devices[rank]);
    Rank& kept = ranks_[rank];
    if (kept.device == devices[rank] && kept.stream == stream && kept.copies.size() == tensors)
      continue;
    kept = {devices[rank], stream, std::vector<Copy>(tensors)};
  }
}

bool ReplicaCache::good(std::size_t tensor, std::size_t rank, const Tensor& source) const {
  const Copy& copy = ranks_[rank].copies[tensor];
  const Storage& storage = *source.storage();
  return copy.storage && copy.storage->version() == copy.version && !copy.storage->exposed() &&
         !storage.exposed() && copy.source == storage.id() &&
         copy.source_version == storage.version() && copy.offset == source.storage_offset() &&
         copy.dtype == source.dtype() && copy.shape == source.shape() &&
         copy.strides == source.strides();
}

Ref<Storage> ReplicaCache::memory(std::size_t tensor, std::size_t rank) const {
  return ranks_[rank].copies[tensor].storage;
}

Ref<Storage> ReplicaCache::reusable(std::size_t tensor, std::size_t rank, std::size_t bytes) const {
  const Ref<Storage>& storage = ranks_[rank].copies[tensor].storage;
  return storage && storage->references() == 1 && storage->bytes() == bytes ? storage
                                                                            : Ref<Storage>();
}

void ReplicaCache::forget(std::size_t tensor, std::size_t rank) {
  ranks_[rank].copies[tensor].source = 0;
}

void ReplicaCache::keep(std::size_t tensor, std::size_t rank, const Tensor& source,
                        const Ref<Storage>& copy) {
  ranks_[rank].copies[tensor] = {copy,
                                 copy->version(),
                                 source.storage()->id(),
                                 source.storage()->version(),
                                 source.storage_offset(),
                                 source.shape(),
                                 source.strides(),
                                 source.dtype()};
}

}  // namespace braid::parallel
