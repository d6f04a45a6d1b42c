#include "simt/runtime/history.hpp"

#include <algorithm>
#include <utility>

namespace braid::simt::detail {

History::Segments::iterator History::split(std::uintptr_t at) {
  auto next = segments_.lower_bound(at);
  if (next != segments_.end() && next->first == at) return next;
  if (next == segments_.begin()) return next;
  auto before = std::prev(next);
  if (before->second.end <= at) return next;
  Segment tail = before->second;
  before->second.end = at;
  return segments_.emplace_hint(next, at, std::move(tail));
}

void History::cover(std::uintptr_t begin, std::uintptr_t end) {
  split(begin);
  split(end);
  std::uintptr_t at = begin;
  for (auto segment = segments_.lower_bound(begin); at < end;) {
    const std::uintptr_t next = segment == segments_.end() ? end : std::min(end, segment->first);
    if (at < next)
      segments_.emplace_hint(segment, at, Segment{next, nullptr, nullptr, nullptr, {}});
    if (segment == segments_.end() || segment->first >= end) break;
    at = segment->second.end;
    ++segment;
  }
}

std::optional<Conflict> History::check(const Segment& segment, const Op& op, Access access) {
  if (segment.freed) {
    const Op& freed = *segment.freed;
    const bool after = ordered(freed, op);
    const bool gives = access == Access::allocate || access == Access::release;
    if (gives && after) return std::nullopt;
    if (gives && op.id < freed.id)
      return Conflict{ReportKind::use_before_alloc, segment.freed,
                      "is freed, with nothing that orders the two, by " + describe(freed)};
    if (gives)
      return Conflict{
          ReportKind::use_after_free, segment.freed,
          "is given out again with nothing that orders it after its free by " + describe(freed)};
    if (access == Access::free)
      return Conflict{ReportKind::double_free, segment.freed,
                      "was freed already by " + describe(freed)};
    return Conflict{ReportKind::use_after_free, segment.freed,
                    (after ? "was freed by " : "is freed, with nothing that orders the two, by ") +
                        describe(freed)};
  }
  if (segment.allocated && !ordered(*segment.allocated, op)) {
    // the block was allocated again before this free, which was queued earlier, has run
    const bool again = access == Access::free && op.id < segment.allocated->id;
    return Conflict{
        again ? ReportKind::use_after_free : ReportKind::use_before_alloc, segment.allocated,
        "is allocated, with nothing that orders the two, by " + describe(*segment.allocated)};
  }
  const ReportKind kind = access == Access::free || access == Access::release
                              ? ReportKind::use_after_free
                          : access == Access::allocate ? ReportKind::use_before_alloc
                                                       : ReportKind::race;
  if (segment.writer && !ordered(*segment.writer, op))
    return Conflict{
        kind, segment.writer,
        "is written, with nothing that orders the two, by " + describe(*segment.writer)};
  if (access == Access::read) return std::nullopt;
  for (const OpPtr& reader : segment.readers)
    if (!ordered(*reader, op))
      return Conflict{kind, reader,
                      "is read, with nothing that orders the two, by " + describe(*reader)};
  return std::nullopt;
}

std::optional<Conflict> History::touch(const OpPtr& op, std::uintptr_t begin, std::uintptr_t end,
                                       Access access) {
  if (begin >= end) return std::nullopt;
  cover(begin, end);
  const auto first = segments_.lower_bound(begin), last = segments_.lower_bound(end);
  std::optional<Conflict> conflict;
  for (auto segment = first; segment != last && !conflict; ++segment) {
    conflict = check(segment->second, *op, access);
    if (!conflict && (access == Access::read || access == Access::write) &&
        segment->second.allocated != first->second.allocated) {
      const OpPtr& other =
          segment->second.allocated ? segment->second.allocated : first->second.allocated;
      conflict = Conflict{ReportKind::out_of_bounds, other,
                          "runs over the end of its block into another, from " + describe(*other)};
    }
  }
  if (access == Access::read) {
    for (auto segment = first; segment != last; ++segment) {
      std::erase_if(segment->second.readers,
                    [&](const OpPtr& reader) { return ordered(*reader, *op); });
      segment->second.readers.push_back(op);
    }
    return conflict;
  }
  Segment merged{end, nullptr, nullptr, nullptr, {}};
  if (access == Access::write) {
    merged.writer = op;
    merged.allocated = first->second.allocated;
    merged.freed = first->second.freed;
    if (std::any_of(first, last, [&](const auto& s) {
          return s.second.allocated != merged.allocated || s.second.freed != merged.freed;
        })) {
      for (auto segment = first; segment != last; ++segment)
        segment->second.writer = op, segment->second.readers.clear();
      return conflict;
    }
  } else if (access == Access::allocate) {
    merged.allocated = op;
  } else {
    merged.freed = op;
  }
  segments_.erase(first, last);
  segments_.emplace(begin, std::move(merged));
  return conflict;
}

}  // namespace braid::simt::detail
