#include "simt/error.hpp"

#include <cstdio>

#include "simt/checker.hpp"
#include "simt/scheduler.hpp"
#include "simt/symbols.hpp"

namespace braid::simt {

const char* to_string(Finding finding) noexcept {
  switch (finding) {
    case Finding::bad_launch: return "bad launch";
    case Finding::out_of_bounds: return "out of bounds";
    case Finding::invalid_address: return "invalid address";
    case Finding::wrong_device: return "wrong device";
    case Finding::use_after_free: return "use after free";
    case Finding::misaligned: return "misaligned";
    case Finding::uninitialised: return "uninitialised";
    case Finding::race: return "race";
    case Finding::stream_race: return "race between streams";
    case Finding::divergent_barrier: return "divergent barrier";
    case Finding::divergent_warp: return "divergent warp";
    case Finding::wrong_mask: return "wrong mask";
    case Finding::async_copy: return "cp.async without a wait";
    case Finding::spin_wait: return "spin-wait";
    case Finding::stack_overflow: return "stack overflow";
    case Finding::shared_memory: return "too much shared memory";
    case Finding::exception: return "exception";
  }
  return "?";
}

std::string base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string to_string(const Location& where) {
  return where.file ? str(base_name(where.file), ":", where.line) : "?";
}

std::string hex(unsigned mask) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", mask);
  return text;
}

const char* name_of(detail::WarpOp op) {
  switch (op) {
    case detail::WarpOp::sync: return "__syncwarp";
    case detail::WarpOp::shuffle: return "shuffle";
    case detail::WarpOp::ballot: return "vote";
    case detail::WarpOp::match: return "match";
    case detail::WarpOp::mma: return "mma";
    case detail::WarpOp::ldmatrix: return "ldmatrix";
  }
  return "?";
}

Error::Details details_at(Finding finding, Location where, Location other) {
  Error::Details d;
  d.finding = finding;
  if (where.file) d.file = base_name(where.file);
  d.line = where.line;
  if (other.file) d.other_file = base_name(other.file);
  d.other_line = other.line;
  return d;
}

std::string Scheduler::kernel() const {
  return launch_->name ? std::string(launch_->name) : kernel_name(launch_->kernel);
}

void Scheduler::pause_checker() noexcept { Checker::pause(); }

void Scheduler::note(Error::Details details, const std::string& what) {
  details.kernel = kernel();
  details.block = blockIdx;
  details.thread = threadIdx;
  const auto triple = [](const uint3& v) { return str("(", v.x, ",", v.y, ",", v.z, ")"); };
  const std::string text = str(details.kernel, " block ", triple(blockIdx), " thread ",
                               triple(threadIdx), ": ", to_string(details.finding), ": ", what);
  error_ = std::make_exception_ptr(Error(text, std::move(details)));
}

void Scheduler::note_at(Finding finding, Location where, const std::string& what, Location other) {
  std::string text = what;
  if (where.file) text += str(" at ", to_string(where));
  if (other.file) text += str(" (the other at ", to_string(other), ")");
  note(details_at(finding, where, other), text);
}

void Scheduler::fail_at(Finding finding, std::uint64_t site, const char* what) {
  pause_checker();
  {
    const SourceLine line = source_line(site);
    Error::Details details;
    details.finding = finding;
    details.file = line.file;
    details.line = line.line;
    note(std::move(details),
         line.file.empty() ? std::string(what) : str(what, ", at ", to_string(line)));
  }
  leave_kernel();
}

void Scheduler::leave_kernel() {
  switch_to(main_);  // this fiber's current execution is abandoned
  __builtin_unreachable();
}

// All threads that have not returned wait for others. Describes runs of threads in the same state.
void Scheduler::report_deadlock() {
  pause_checker();
  std::string text = "all threads that are left wait for others:";
  const auto same = [](const Thread& a, const Thread& b) {
    return a.state == b.state &&
           (a.state == State::done ||
            (a.where.line == b.where.line && a.mask == b.mask && a.barrier == b.barrier));
  };
  for (Thread& thread : threads_)
    if (thread.state == State::at_barrier) thread.where = barrier_;
  const Thread* first = nullptr;
  for (std::size_t i = 0; i < threads_.size();) {
    const Thread& a = threads_[i];
    std::size_t j = i;
    while (j < threads_.size() && same(a, threads_[j])) ++j;
    text += str("\n    threads ", i, "..", j - 1, ": ");
    if (a.state == State::done) text += "have returned";
    else if (a.state == State::at_barrier)
      text += str("wait at the __syncthreads at ", to_string(a.where));
    else if (a.state == State::at_some_barrier && a.barrier != 0)
      text += str("wait at the named barrier ", a.barrier, ", where ",
                  sync_.named[static_cast<std::size_t>(a.barrier)].arrived, " of ",
                  sync_.named[static_cast<std::size_t>(a.barrier)].threads, " have arrived, at ",
                  to_string(a.where));
    else if (a.state == State::at_some_barrier)
      text += str("wait for an mbarrier at ", to_string(a.where));
    else
      text += str("wait in a warp operation with mask ", hex(a.mask), " at ", to_string(a.where));
    if (!first && a.state != State::done) first = &a;
    i = j;
  }
  const Finding finding =
      first->state == State::in_warp_op ? Finding::divergent_warp : Finding::divergent_barrier;
  Error::Details details = details_at(finding, first->where);
  details.kernel = kernel();
  details.block = blockIdx;
  details.thread = first->id;
  const std::string message = str(details.kernel, " block (", blockIdx.x, ",", blockIdx.y, ",",
                                  blockIdx.z, "): ", to_string(finding), ": ", text);
  abandon();
  throw Error(message, std::move(details));
}

}  // namespace braid::simt
