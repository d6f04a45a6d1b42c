#pragma once
#include <braid/core/kernel_args/loop.hpp>

#include "cpu/simd/vec.hpp"

// Iteration over strided operands: positions of a Loop in row-major order, and copies between
// strided operands and contiguous buffers.
namespace braid::cpu::BRAID_ISA {
namespace {

/// A position in a Loop.
struct Position {
  std::int64_t index[kMaxRank];
};

BRAID_INLINE Position position_of(const Loop& loop, std::int64_t linear) {
  Position p;
  for (int d = loop.rank - 1; d >= 0; --d) {
    p.index[d] = linear % loop.size[d];
    linear /= loop.size[d];
  }
  return p;
}

BRAID_INLINE std::int64_t offset_of(const Loop& loop, int operand, const Position& p) {
  std::int64_t offset = 0;
  for (int d = 0; d < loop.rank; ++d) offset += p.index[d] * loop.stride[operand][d];
  return offset;
}

/// The offset of element `linear` of an operand, in row-major order.
BRAID_INLINE std::int64_t offset_at(const Loop& loop, int operand, std::int64_t linear) {
  if (loop.rank == 1) return linear * loop.stride[operand][0];
  return offset_of(loop, operand, position_of(loop, linear));
}

/// True if the operand's elements are in row-major order without gaps.
BRAID_INLINE bool is_contiguous(const Loop& loop, int operand) {
  std::int64_t expected = 1;
  for (int d = loop.rank - 1; d >= 0; --d) {
    if (loop.size[d] == 1) continue;
    if (loop.stride[operand][d] != expected) return false;
    expected *= loop.size[d];
  }
  return true;
}

/// True if the operand is one repeated element.
BRAID_INLINE bool is_repeated(const Loop& loop, int operand) {
  for (int d = 0; d < loop.rank; ++d)
    if (loop.size[d] != 1 && loop.stride[operand][d] != 0) return false;
  return true;
}

/// Calls f(offset, stride, run) for each run along the innermost dim that `count` > 0 elements from
/// a position consist of.
template <class F>
BRAID_INLINE void for_runs(const Loop& loop, int operand, Position at, std::int64_t count, F&& f) {
  const int inner = loop.rank - 1;
  if (inner < 0) return f(std::int64_t{0}, std::int64_t{1}, count);
  const std::int64_t* stride = loop.stride[operand];
  std::int64_t offset = offset_of(loop, operand, at);
  for (;;) {
    const std::int64_t left = loop.size[inner] - at.index[inner], run = left < count ? left : count;
    f(offset, stride[inner], run);
    count -= run;
    if (count == 0) return;
    offset -= at.index[inner] * stride[inner];
    at.index[inner] = 0;
    for (int d = inner - 1; d >= 0; --d) {
      offset += stride[d];
      if (++at.index[d] < loop.size[d]) break;
      offset -= stride[d] * loop.size[d];
      at.index[d] = 0;
    }
  }
}

template <class T>
BRAID_INLINE void gather_elements(T* buffer, const T* source, const Loop& loop, int operand,
                                  const Position& at, std::int64_t count) {
  for_runs(loop, operand, at, count,
           [&](std::int64_t offset, std::int64_t stride, std::int64_t run) {
             const T* p = source + offset;
             if (stride == 1) {
               for (std::int64_t i = 0; i < run; ++i) store(buffer + i, load<T>(p + i));
             } else {
               for (std::int64_t i = 0; i < run; ++i) store(buffer + i, load<T>(p + i * stride));
             }
             buffer += run;
           });
}
template <class T>
BRAID_INLINE void scatter_elements(const T* buffer, T* target, const Loop& loop, int operand,
                                   const Position& at, std::int64_t count) {
  for_runs(loop, operand, at, count,
           [&](std::int64_t offset, std::int64_t stride, std::int64_t run) {
             T* p = target + offset;
             for (std::int64_t i = 0; i < run; ++i) store(p + i * stride, load<T>(buffer + i));
             buffer += run;
           });
}

/// The same for elements of 1, 2, 4 or 8 bytes of any type (load and store copy bytes).
__attribute__((noinline)) inline void gather(void* buffer, const void* source, int bytes,
                                             const Loop& loop, int operand, const Position& at,
                                             std::int64_t count) {
  switch (bytes) {
    case 1:
      return gather_elements(static_cast<std::uint8_t*>(buffer),
                             static_cast<const std::uint8_t*>(source), loop, operand, at, count);
    case 2:
      return gather_elements(static_cast<std::uint16_t*>(buffer),
                             static_cast<const std::uint16_t*>(source), loop, operand, at, count);
    case 4:
      return gather_elements(static_cast<std::uint32_t*>(buffer),
                             static_cast<const std::uint32_t*>(source), loop, operand, at, count);
    default:
      return gather_elements(static_cast<std::uint64_t*>(buffer),
                             static_cast<const std::uint64_t*>(source), loop, operand, at, count);
  }
}
__attribute__((noinline)) inline void scatter(const void* buffer, void* target, int bytes,
                                              const Loop& loop, int operand, const Position& at,
                                              std::int64_t count) {
  switch (bytes) {
    case 1:
      return scatter_elements(static_cast<const std::uint8_t*>(buffer),
                              static_cast<std::uint8_t*>(target), loop, operand, at, count);
    case 2:
      return scatter_elements(static_cast<const std::uint16_t*>(buffer),
                              static_cast<std::uint16_t*>(target), loop, operand, at, count);
    case 4:
      return scatter_elements(static_cast<const std::uint32_t*>(buffer),
                              static_cast<std::uint32_t*>(target), loop, operand, at, count);
    default:
      return scatter_elements(static_cast<const std::uint64_t*>(buffer),
                              static_cast<std::uint64_t*>(target), loop, operand, at, count);
  }
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
