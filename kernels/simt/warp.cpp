// Warp operations: the lanes of a mask wait for each other, and the last to arrive does the work
// for all.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "simt/checker.hpp"
#include "simt/half.hpp"
#include "simt/scheduler.hpp"

namespace braid::simt {

using detail::WarpOp;

WarpGroup& Scheduler::meet(unsigned mask, WarpOp op, int kind, const void* in, std::size_t bytes,
                           Location where) {
  Thread& me = *current_;
  const unsigned lane = me.index % 32, w = me.index / 32;
  Warp& warp = warps_[w];
  const unsigned named = mask & warp.lanes;
  if (!(named >> lane & 1))
    fail(Finding::wrong_mask, where, [&] {
      return str(name_of(op), ": the calling lane ", lane, " is not in its own mask ", hex(mask),
                 ",");
    });
  mask = named & ~warp.done;  // all lanes of the mask that have not returned must arrive
  WarpGroup* group = nullptr;
  for (WarpGroup* g : warp.entering)
    if (g->named == named) group = g;
  const unsigned here = (group ? group->arrived : 0) | 1u << lane;
  for (const WarpGroup* g : warp.entering)
    // a deadlock: each waits for a lane that waits in the other
    if (g != group && (mask & ~here & g->arrived) && (g->mask & ~g->arrived & here))
      fail(
          Finding::wrong_mask, where,
          [&] {
            return str(name_of(op), " with mask ", hex(named), " overlaps the mask ", hex(g->named),
                       " of a ", name_of(g->op), " under way,");
          },
          g->where);
  if (!group) {
    if (free_groups_.empty()) {
      groups_.push_back(std::make_unique<WarpGroup>());
      group = groups_.back().get();
    } else {
      group = free_groups_.back();
      free_groups_.pop_back();
    }
    group->named = named;
    group->mask = mask;
    group->arrived = 0;
    group->op = op;
    group->kind = kind;
    group->where = where;
    warp.entering.push_back(group);
  } else if (group->op != op || group->kind != kind ||
             (op != WarpOp::sync && group->where.line != where.line)) {
    fail(
        Finding::divergent_warp, where,
        [&] {
          return str(name_of(op), " meets a ", name_of(group->op), " of other lanes of the warp");
        },
        group->where);
  }
  if (bytes != 0) std::memcpy(group->in[lane], in, bytes);
  group->arrived |= 1u << lane;
  if (group->arrived == mask) {
    complete(*group, warp, w);
    if ((effort_ += 32) > config_.progress_limit) fail_without_progress(where);
  } else {
    me.where = where;
    me.mask = named;
    me.state = State::in_warp_op;
    wait();
  }
  return *group;
}

void Scheduler::complete(WarpGroup& group, Warp& warp, unsigned w) {
  ++stats_.warp_ops;
  if (group.op == WarpOp::mma) ++stats_.mma;
  std::erase(warp.entering, &group);
  group.leaving = std::popcount(group.mask);
  if (group.op == WarpOp::sync && checker_) checker_->warp_barrier(w, group.mask);
  if ((group.op == WarpOp::mma || group.op == WarpOp::ldmatrix) && group.mask == ~0u)
    land_group(group);
  const unsigned me =
      current_->index / 32 == w && current_->state != State::done ? 1u << current_->index % 32 : 0;
  for (unsigned others = group.mask & ~me; others != 0; others &= others - 1)
    make_ready(threads_[32 * w + static_cast<unsigned>(std::countr_zero(others))]);
}

// A lane has returned: operations no longer wait for it.
void Scheduler::leave_warp(unsigned w, unsigned lane) {
  Warp& warp = warps_[w];
  warp.done |= 1u << lane;
  for (std::size_t i = 0; i < warp.entering.size();) {
    WarpGroup& group = *warp.entering[i];
    group.mask &= ~(1u << lane);
    if (group.arrived == group.mask) complete(group, warp, w);
    else ++i;
  }
}

namespace {

float element(std::uint32_t word, int half, detail::Mma kind) {
  const auto bits = static_cast<std::uint16_t>(half ? word >> 16 : word);
  return kind == detail::Mma::bf16 ? detail::bfloat16_value(bits) : detail::half_value(bits);
}

/// The sum of c and the products as a tensor core makes it: aligned to the largest of them, where
/// each keeps 25 bits and the rest is cut off, added exactly, and cut to 24 bits. Measured on
/// A100 by Fasi, Higham, Mikaitis and Pranesh (2021), for as many products as it adds at a time;
/// here they are all those of one mma.
float cut_sum(float c, const float (&a)[16], const float (&b)[16][8], int column, int depth) {
  double terms[17] = {c}, largest = std::fabs(c);
  for (int k = 0; k < depth; ++k) {
    terms[k + 1] = static_cast<double>(a[k]) * b[k][column];
    largest = std::max(largest, std::fabs(terms[k + 1]));
  }
  double sum = 0;
  if (!std::isfinite(largest) || largest == 0) {
    for (int k = 0; k <= depth; ++k) sum += terms[k];
    return static_cast<float>(sum);
  }
  const double unit = std::ldexp(1.0, std::ilogb(largest) - 24);
  for (int k = 0; k <= depth; ++k) sum += std::trunc(terms[k] / unit);
  sum *= unit;
  const auto nearest = static_cast<float>(sum);
  return std::fabs(nearest) > std::fabs(sum) ? std::nextafter(nearest, 0.0f) : nearest;
}

// in: a0..a3, b0, b1, c0..c3 of each lane; out: d0..d3. The layouts are those of the PTX manual,
// see ptx.hpp.
void multiply_warp(WarpGroup& group, bool cuts) {
  const auto kind = static_cast<detail::Mma>(group.kind);
  const int depth = kind == detail::Mma::tf32 ? 8 : 16;
  float a[16][16], b[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane >> 2, t = lane & 3;
    const std::uint32_t* r = group.in[lane];
    for (int i = 0; i < 4; ++i) {
      const int row = g + 8 * (i & 1);
      if (kind == detail::Mma::tf32) {
        a[row][t + 4 * (i >> 1)] = std::bit_cast<float>(r[i] & ~0x1fffu);
      } else {
        for (int h = 0; h < 2; ++h) a[row][2 * t + h + 8 * (i >> 1)] = element(r[i], h, kind);
      }
    }
    for (int i = 0; i < 2; ++i) {
      if (kind == detail::Mma::tf32) {
        b[t + 4 * i][g] = std::bit_cast<float>(r[4 + i] & ~0x1fffu);
      } else {
        for (int h = 0; h < 2; ++h) b[2 * t + h + 8 * i][g] = element(r[4 + i], h, kind);
      }
    }
  }
  float d[16][8];
  for (int lane = 0; lane < 32; ++lane)
    for (int e = 0; e < 4; ++e)
      d[(lane >> 2) + 8 * (e >> 1)][2 * (lane & 3) + (e & 1)] =
          std::bit_cast<float>(group.in[lane][6 + e]);
  for (int row = 0; row < 16; ++row)
    if (cuts) {
      for (int col = 0; col < 8; ++col) d[row][col] = cut_sum(d[row][col], a[row], b, col, depth);
    } else {
      for (int k = 0; k < depth; ++k)
        for (int col = 0; col < 8; ++col) d[row][col] += a[row][k] * b[k][col];
    }
  for (int lane = 0; lane < 32; ++lane)
    for (int e = 0; e < 4; ++e)
      group.out[lane][e] =
          std::bit_cast<std::uint32_t>(d[(lane >> 2) + 8 * (e >> 1)][2 * (lane & 3) + (e & 1)]);
}

// kind: number of matrices, negative if transposed. in: the row address of each lane.
void load_warp(WarpGroup& group) {
  const bool transposed = group.kind < 0;
  const int count = transposed ? -group.kind : group.kind;
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < count; ++i) {
      std::uint16_t pair[2];
      for (int h = 0; h < 2; ++h) {
        const int row = transposed ? (lane & 3) * 2 + h : lane >> 2,
                  column = transposed ? lane >> 2 : (lane & 3) * 2 + h;
        const char* address = nullptr;
        std::memcpy(&address, group.in[8 * i + row], sizeof address);
        std::memcpy(&pair[h], address + 2 * column, 2);
      }
      group.out[lane][i] = pair[0] | static_cast<std::uint32_t>(pair[1]) << 16;
    }
}

}  // namespace

void Scheduler::land_group(WarpGroup& group) {
  if (group.op == WarpOp::mma) multiply_warp(group, config_.mma_cuts);
  else load_warp(group);
}

void Scheduler::async_copy(const AsyncCopy& copy) {
  const auto address = reinterpret_cast<std::uintptr_t>(copy.shared) |
                       (copy.bytes != 0 ? reinterpret_cast<std::uintptr_t>(copy.global) : 0);
  if (address % static_cast<unsigned>(copy.size) != 0)
    fail(Finding::misaligned, copy.where, [&] {
      return str("cp.async of ", copy.size, " bytes: expected addresses that are multiples of ",
                 copy.size, ", got others");
    });
  if (copy.bytes < 0 || copy.bytes > copy.size)
    fail(Finding::out_of_bounds, copy.where,
         [&] { return str("cp.async: expected 0 to ", copy.size, " bytes, got ", copy.bytes); });
  if (!arena_.holds(copy.shared))
    fail(Finding::invalid_address, copy.where,
         "cp.async: expected a destination in shared memory, got another");
  if (copy.bytes != 0 && arena_.holds(copy.global))
    fail(Finding::invalid_address, copy.where,
         "cp.async: expected a source in global memory, got shared memory");
  if (checker_)
    checker_->async_issue(copy.shared, static_cast<std::size_t>(copy.size), copy.global,
                          static_cast<std::size_t>(copy.bytes), copy.where);
  if (!config_.late_async) {
    land(copy);
    return;
  }
  current_->copies.push_back(copy);
  current_->copies.back().group = current_->groups;
  if (checker_ && copy.bytes != 0)
    std::memcpy(current_->copies.back().source, copy.global, static_cast<std::size_t>(copy.bytes));
}

void Scheduler::land(const AsyncCopy& copy) {
  if (checker_ && config_.late_async && copy.bytes != 0 &&
      std::memcmp(copy.source, copy.global, static_cast<std::size_t>(copy.bytes)) != 0)
    fail(Finding::race, copy.where,
         "the source of a cp.async was overwritten before the wait for it; the copy is");
  if (checker_)
    checker_->async_land(copy.shared, static_cast<std::size_t>(copy.size), copy.global,
                         static_cast<std::size_t>(copy.bytes), copy.where);
  if (copy.bytes != 0) std::memcpy(copy.shared, copy.global, static_cast<std::size_t>(copy.bytes));
  std::memset(static_cast<char*>(copy.shared) + copy.bytes, 0,
              static_cast<std::size_t>(copy.size - copy.bytes));
}

// The data arrives here and not earlier, so that a missing or insufficient wait is detected.
void Scheduler::async_wait(int newest) {
  auto& copies = current_->copies;
  std::size_t landed = 0;
  while (landed < copies.size() && copies[landed].group < current_->groups - newest)
    land(copies[landed++]);
  copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(landed));
}

void Scheduler::async_wait_all() {
  for (const AsyncCopy& copy : current_->copies) land(copy);
  current_->copies.clear();
}

}  // namespace braid::simt
