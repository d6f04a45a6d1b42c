// The texts of the checker's findings.
#include <dlfcn.h>

#include <algorithm>

#include "simt/checker.hpp"
#include "simt/scheduler.hpp"

namespace braid::simt {

namespace {

const char* verb(Access mode) {
  switch (mode) {
    case Access::read: return "reads";
    case Access::write: return "writes";
    case Access::atomic: return "atomically updates";
    case Access::acquire: return "reads with load_acquire";
    case Access::release: return "writes with store_release";
  }
  return "";
}

std::string who_is(std::uint16_t who) {
  if (who == kMany) return "a thread";
  if (who >= kWarp) return str("several threads of warp ", who - kWarp);
  return str("thread ", who - 1, " of the block");
}

}  // namespace

std::string waits_for_a_flag(std::uint64_t times) {
  return str("load_acquire waits for a value that no block which has begun will write (", times,
             " reads). Blocks may start in any order: a block may wait only for blocks that have "
             "begun before it, so take the numbers of tiles from an atomic counter");
}

std::string Checker::variable(const Region& r) {
  if (r.shared()) return r.name;
  return str(r.kind == MemoryKind::pinned ? "pinned" : "global", " allocation of ", r.bytes,
             " bytes");
}

std::string Checker::describe(const Region& r, const char* a) const {
  const auto offset = static_cast<std::size_t>(a - r.begin);
  if (r.shared())
    return str("shared ", r.name, "[", offset / r.element, "] (byte ", offset, " of ", r.bytes,
               ")");
  const std::string place =
      r.kind == MemoryKind::pinned ? "pinned host memory" : str("cuda:", r.device);
  return str("byte ", offset, " of a global allocation of ", r.bytes, " bytes (", place, ")");
}

void Checker::leave() {
  if (scheduler_) scheduler_->leave_kernel();
  std::rethrow_exception(std::exchange(error_, nullptr));
}

void Checker::note(Finding finding, const Region* r, Site site, const std::string& text,
                   Site other) {
  const std::vector<SourceLine> lines = source_lines({site, other});
  Error::Details details;
  details.finding = finding;
  if (r) details.variable = variable(*r);
  details.file = lines[0].file;
  details.line = lines[0].line;
  details.other_file = lines[1].file;
  details.other_line = lines[1].line;
  std::string what = text;
  if (site != 0) what += str(", at ", to_string(lines[0]));
  if (scheduler_) {
    scheduler_->note(std::move(details), what);
  } else {
    const std::string full = str(op_description(op_), ": ", to_string(finding), ": ", what);
    error_ = std::make_exception_ptr(Error(full, std::move(details)));
  }
}

void Checker::note_race(Region& r, const char* a, Access mode, Site site, std::uint16_t who,
                        const char* did, Site other, const char* why) {
  note(Finding::race, &r, site,
       str(verb(mode), " ", describe(r, a), ", which ", who_is(who), " ", did,
           other != 0 ? str(" at ", to_string(source_line(other))) : "", ", ", why),
       other);
}

void Checker::note_stream_race(Region& r, const char* a, Access mode, Site site, std::uint32_t op,
                               const char* did, Site other) {
  note(Finding::stream_race, &r, site,
       str(scheduler_ ? op_description(op_) + " " : "", verb(mode), " ", describe(r, a), ", which ",
           op_description(op), " ", did,
           other != 0 ? str(" at ", to_string(source_line(other))) : "",
           ", with no event or synchronisation that orders the two"),
       other);
}

void Checker::note_nowhere(const char* a, std::size_t bytes, Access mode, Site site) {
  const std::string start = str(verb(mode), " ", bytes, " bytes ");
  if (static_cast<std::size_t>(a - arena_) < arena_bytes_) {
    const Region* nearest = nullptr;
    for (const Region& r : shared_)
      if (r.begin <= a && (!nearest || r.begin > nearest->begin)) nearest = &r;
    if (!nearest)
      return note(Finding::out_of_bounds, nullptr, site,
                  start + "of shared memory before the first array");
    return note(
        Finding::out_of_bounds, nearest, site,
        str(start, static_cast<std::size_t>(a - nearest->begin) - nearest->bytes,
            " bytes past the end of shared ", nearest->name, " (", nearest->bytes, " bytes)"));
  }
  if (scheduler_->fiber().in_guard(a))
    return note(Finding::stack_overflow, nullptr, site,
                str("local variables take more than the ", scheduler_->fiber().bytes(),
                    " bytes of a thread's stack"));
  const Region* below = MemoryMap::instance().below(a);
  if (below && static_cast<std::size_t>(a - below->begin) < below->bytes + 4096)
    return note(Finding::out_of_bounds, below, site,
                str(start, static_cast<std::size_t>(a - below->begin) - below->bytes,
                    " bytes past the end of a global allocation of ", below->bytes, " bytes"));
  const Region* above = MemoryMap::instance().find(a + 1024);
  if (above)
    return note(Finding::out_of_bounds, above, site,
                str(start, above->begin - a, " bytes before a global allocation of ", above->bytes,
                    " bytes"));
  Dl_info info{};
  if (dladdr(a, &info) != 0)
    return note(Finding::invalid_address, nullptr, site,
                str(start,
                    "of a variable of the program, which is not device memory (__device__ "
                    "variables are not emulated: pass memory as an argument)"));
  note(Finding::invalid_address, nullptr, site,
       str(start, "at ", static_cast<const void*>(a),
           ", which is not device memory: a host pointer, or one that was freed"));
}

// Reports an access that is partly or completely in memory that is not allocated.
void Checker::note_state(Region& r, const char* a, std::size_t bytes, Access mode, Site site) {
  const auto word = static_cast<std::size_t>(a - r.begin) / 4;
  constexpr std::size_t kNear = 512 / 4;
  std::size_t back = 0;
  while (back < kNear && back < word && (r.state[word - 1 - back] & 15) == 0) ++back;
  const bool near = word > back && back < kNear &&
                    (r.cells[word].write_tick == 0 && r.cells[word].read_tick == 0);
  if (near)
    return note(
        Finding::out_of_bounds, &r, site,
        str(verb(mode), " ", bytes, " bytes about ", 4 * back,
            " bytes past the end of a block that the allocator gave out: ", describe(r, a)));
  note(Finding::use_after_free, &r, site,
       str(verb(mode), " ", bytes,
           " bytes of memory that its allocator has taken back: ", describe(r, a)));
}

void Checker::note_uninitialised(Region& r, const char* a, Site site, bool in_flight) {
  if (in_flight)
    return note(Finding::uninitialised, &r, site,
                str("reads ", describe(r, a),
                    ", where a cp.async is under way: the wait for it is missing or too weak"));
  note(Finding::uninitialised, &r, site, str("reads ", describe(r, a), ", which nobody wrote"));
}

}  // namespace braid::simt
