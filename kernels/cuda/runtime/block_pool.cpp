#include "cuda/runtime/block_pool.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace braid::cuda {
namespace {

constexpr int kLooks = 64;  // parts of a class to look at; rarely so many

}  // namespace

Part& Parts::make() {
  if (spare_ == nullptr) {
    all_.emplace_back();
    return all_.back();
  }
  Part& part = *std::exchange(spare_, spare_->next);
  part = {};
  return part;
}

void Parts::drop(Part& part) noexcept {
  part.next = spare_;
  spare_ = &part;
}

std::size_t BlockPool::class_of(std::size_t size) noexcept {
  const std::size_t units = size / kUnit;
  if (units < 32) return units;
  const auto power = static_cast<std::size_t>(std::bit_width(units) - 1);
  return 32 + (power - 5) * 16 + ((units >> (power - 4)) & 15);
}

Part* BlockPool::find(Lists& lists, std::size_t size) const noexcept {
  const auto smallest = [size](Part* part) {
    Part* best = nullptr;
    for (int looks = 0; part != nullptr && looks < kLooks; part = part->next, ++looks) {
      if (part->size == size) return part;
      if (part->size > size && (best == nullptr || part->size < best->size)) best = part;
    }
    return best;
  };
  const std::size_t own = class_of(size);
  if (Part* const part = smallest(lists.first[own])) return part;
  std::size_t word = (own + 1) / 64;  // any part of a class above is large enough
  for (std::uint64_t bits = word < lists.filled.size()
                                ? lists.filled[word] & (~std::uint64_t{0} << ((own + 1) % 64))
                                : 0;
       ;) {
    if (bits != 0)
      return smallest(lists.first[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))]);
    if (++word >= lists.filled.size()) return nullptr;
    bits = lists.filled[word];
  }
}

Part* BlockPool::take(std::size_t size) {
  Part* const part = find(is_small(size) ? small_ : large_, size);
  if (part == nullptr) return nullptr;
  if (part->size > size) {
    Part& rest = parts_.make();
    unlist(*part);
    rest.data = part->data + size;
    rest.size = part->size - size;
    rest.segment = part->segment;
    rest.before = part;
    rest.after = part->after;
    if (rest.after != nullptr) rest.after->before = &rest;
    part->after = &rest;
    part->size = size;
    list(rest);
  } else {
    unlist(*part);
  }
  return part;
}

void BlockPool::put(Part& freed) noexcept {
  const auto join_next = [this](Part& part) {
    Part& next = *part.after;
    part.size += next.size;
    part.after = next.after;
    if (part.after != nullptr) part.after->before = &part;
    parts_.drop(next);
  };
  Part* part = &freed;
  if (part->after != nullptr && part->after->free) {
    unlist(*part->after);
    join_next(*part);
  }
  if (part->before != nullptr && part->before->free) {
    part = part->before;
    unlist(*part);
    join_next(*part);
  }
  list(*part);
}

void BlockPool::list(Part& part) noexcept {
  Lists& lists = lists_of(part);
  const std::size_t index = class_of(part.size);
  part.free = true;
  part.previous = nullptr;
  part.next = std::exchange(lists.first[index], &part);
  if (part.next != nullptr) part.next->previous = &part;
  lists.filled[index / 64] |= std::uint64_t{1} << (index % 64);
}

void BlockPool::unlist(Part& part) noexcept {
  Lists& lists = lists_of(part);
  const std::size_t index = class_of(part.size);
  part.free = false;
  if (part.next != nullptr) part.next->previous = part.previous;
  if (part.previous != nullptr) part.previous->next = part.next;
  else if ((lists.first[index] = part.next) == nullptr)
    lists.filled[index / 64] &= ~(std::uint64_t{1} << (index % 64));
}

void BlockPool::add(void* data, std::size_t size, bool small) {
  Part& all = parts_.make();
  try {
    segments_.push_back(
        std::make_unique<Segment>(Segment{static_cast<char*>(data), size, this, small, &all}));
  } catch (...) {
    parts_.drop(all);
    throw;
  }
  all.data = static_cast<char*>(data);
  all.size = size;
  all.segment = segments_.back().get();
  list(all);
}

Segment* BlockPool::smallest_whole(std::size_t size) noexcept {
  Segment* best = nullptr;
  for (const auto& s : segments_)
    if (s->whole() && s->small == is_small(size) && s->size >= size &&
        (best == nullptr || s->size < best->size))
      best = s.get();
  return best;
}

Segment* BlockPool::largest_whole() noexcept {
  Segment* best = nullptr;
  for (const auto& s : segments_)
    if (s->whole() && (best == nullptr || s->size > best->size)) best = s.get();
  return best;
}

bool BlockPool::owns(const void* data) const noexcept {
  return std::any_of(segments_.begin(), segments_.end(),
                     [&](const auto& s) { return s->data == data; });
}

std::size_t BlockPool::index_of(const Segment& segment) const noexcept {
  std::size_t at = 0;
  while (segments_[at].get() != &segment) ++at;
  return at;
}

void BlockPool::remove(Segment& segment) noexcept {
  unlist(*segment.first);
  parts_.drop(*segment.first);
  std::swap(segments_[index_of(segment)], segments_.back());
  segments_.pop_back();
}

void BlockPool::adopt(BlockPool& other, Segment& segment) {
  segments_.push_back(nullptr);
  for (Part* part = segment.first; part != nullptr; part = part->after) {
    if (!part->free) continue;
    other.unlist(*part);
    list(*part);
  }
  segment.pool = this;
  std::unique_ptr<Segment>& place = other.segments_[other.index_of(segment)];
  segments_.back() = std::move(place);
  place = std::move(other.segments_.back());
  other.segments_.pop_back();
}

void BlockPool::adopt(BlockPool& other) {
  segments_.reserve(segments_.size() + other.segments_.size());
  while (!other.segments_.empty()) adopt(other, *other.segments_.back());
}

}  // namespace braid::cuda
