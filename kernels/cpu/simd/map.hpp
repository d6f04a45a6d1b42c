#pragma once
#include <braid/core/kernel_args/loop.hpp>

#include "cpu/cache_size.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/elements.hpp"
#include "cpu/simd/walk.hpp"

// The driver of elementwise kernels. A kernel is a function over contiguous chunks. The driver
// handles every layout in one of these ways:
//   flat      all operands are contiguous or one element: the kernel runs over the whole tile
//   rows      the innermost dim has strides 0 and 1: the kernel runs row by row
//   buffered  anything else: chunks are gathered into small buffers, and scattered afterwards
// A repeated operand is one vector of equal lanes that the kernel loads again for each vector (step
// 0), so broadcasting needs no separate kernels.
namespace braid::cpu::BRAID_ISA {
namespace {

constexpr int kMaxInputs = 3;
constexpr std::int64_t kTile = 16 * 1024;  // elements per tile; does not depend on threads
constexpr std::int64_t kChunk = 512;       // elements gathered at a time
constexpr std::int64_t kShortRow = 16;     // rows shorter than this are gathered
constexpr std::int64_t kStreamBytes = 4096;

/// Operands of a kernel: step 1 is contiguous, step 0 repeats the same vector.
struct Inputs {
  const void* p[kMaxInputs];
  std::int64_t step[kMaxInputs];
};
/// Computes n > 0 elements into contiguous `out`, which may be the memory of an input.
using MapKernel = void (*)(void* out, const Inputs& in, std::int64_t n, const void* parameters);

/// One vector of equal elements.
struct alignas(64) Repeated {
  char bytes[64];
};
BRAID_INLINE void repeat(Repeated& r, const void* element, int bytes) {
  const auto fill = [&]<class T>(T value) {
    __builtin_memcpy(&value, element, sizeof value);
    for (int i = 0; i < 64; i += kVectorBytes)
      store(r.bytes + i, splat<Vec<T, kVectorBytes / static_cast<int>(sizeof(T))>>(value));
  };
  switch (bytes) {
    case 1: return fill(std::uint8_t{});
    case 2: return fill(std::uint16_t{});
    case 4: return fill(std::uint32_t{});
    default: return fill(std::uint64_t{});
  }
}

/// An elementwise operation: operand 0 of the loop is `out`, operand 1 + i is input i. If
/// `scalar[i]`, input i is one element and has no strides.
struct Map {
  MapKernel kernel;
  const void* parameters;
  const Loop& loop;
  void* out;
  int out_bytes;
  int inputs;
  const void* in[kMaxInputs];
  int in_bytes[kMaxInputs];
  bool scalar[kMaxInputs];
};

/// A Map with the properties of its layout.
struct MapPlan {
  const Map& map;
  bool flat = true, rows = true, out_contiguous, streamed;
  bool contiguous[kMaxInputs] = {}, repeated[kMaxInputs] = {};
  Repeated vector[kMaxInputs];

  explicit MapPlan(const Map& m) : map(m) {
    const Loop& loop = m.loop;
    const int inner = loop.rank - 1;
    out_contiguous = is_contiguous(loop, 0);
    flat = out_contiguous;
    rows = inner >= 0 && loop.size[inner] >= kShortRow && loop.stride[0][inner] == 1;
    for (int i = 0; i < m.inputs; ++i) {
      repeated[i] = m.scalar[i] || is_repeated(loop, 1 + i);
      if (repeated[i]) {
        repeat(vector[i], m.in[i], m.in_bytes[i]);
        continue;
      }
      contiguous[i] = is_contiguous(loop, 1 + i);
      flat = flat && contiguous[i];
      rows = rows && (loop.stride[1 + i][inner] == 0 || loop.stride[1 + i][inner] == 1);
    }
    streamed = flat && beyond_cache();
  }
  /// True if writing past the caches pays: the output is larger than they are and is not an input.
  [[nodiscard]] bool beyond_cache() const {
    const std::int64_t bytes = map.loop.n * map.out_bytes;
    if (bytes < (std::int64_t{1} << 20) ||
        static_cast<std::size_t>(bytes) <= last_level_cache_bytes())
      return false;
    for (int i = 0; i < map.inputs; ++i)
      if (map.in[i] == map.out) return false;
    return reinterpret_cast<std::uintptr_t>(map.out) % static_cast<unsigned>(map.out_bytes) == 0;
  }
};

BRAID_INLINE void run_flat(const MapPlan& plan, char* out, std::int64_t begin, std::int64_t n) {
  const Map& map = plan.map;
  Inputs in;
  for (int i = 0; i < map.inputs; ++i) {
    in.step[i] = plan.repeated[i] ? 0 : 1;
    in.p[i] = plan.repeated[i] ? plan.vector[i].bytes
                               : static_cast<const char*>(map.in[i]) + begin * map.in_bytes[i];
  }
  map.kernel(out, in, n, map.parameters);
}

inline void run_streamed(const MapPlan& plan, std::int64_t begin, std::int64_t end) {
  const Map& map = plan.map;
  alignas(64) char buffer[kStreamBytes];
  char* const base = static_cast<char*>(map.out);
  const std::int64_t chunk = kStreamBytes / map.out_bytes;
  const std::int64_t misaligned = static_cast<std::int64_t>(
      reinterpret_cast<std::uintptr_t>(base + begin * map.out_bytes) % 64);
  std::int64_t head = misaligned == 0 ? 0 : (64 - misaligned) / map.out_bytes;
  if (head > end - begin) head = end - begin;
  if (head > 0) run_flat(plan, base + begin * map.out_bytes, begin, head);
  std::int64_t at = begin + head;
  for (; at + chunk <= end; at += chunk) {
    run_flat(plan, buffer, at, chunk);
    for (int i = 0; i < kStreamBytes; i += kVectorBytes)
      stream_store(base + at * map.out_bytes + i, load<VI>(buffer + i));
  }
  stream_fence();
  if (at < end) run_flat(plan, base + at * map.out_bytes, at, end - at);
}

inline void run_rows(const MapPlan& plan, std::int64_t begin, std::int64_t end) {
  const Map& map = plan.map;
  const Loop& loop = map.loop;
  const int inner = loop.rank - 1;
  Position at = position_of(loop, begin);
  Repeated vector[kMaxInputs];
  for (std::int64_t left = end - begin; left > 0;) {
    const std::int64_t rest = loop.size[inner] - at.index[inner], run = rest < left ? rest : left;
    Inputs in;
    for (int i = 0; i < map.inputs; ++i) {
      in.step[i] = plan.repeated[i] ? 0 : loop.stride[1 + i][inner];
      if (plan.repeated[i]) {
        in.p[i] = plan.vector[i].bytes;
        continue;
      }
      in.p[i] = static_cast<const char*>(map.in[i]) + offset_of(loop, 1 + i, at) * map.in_bytes[i];
      if (in.step[i] == 0) {
        repeat(vector[i], in.p[i], map.in_bytes[i]);
        in.p[i] = vector[i].bytes;
      }
    }
    map.kernel(static_cast<char*>(map.out) + offset_of(loop, 0, at) * map.out_bytes, in, run,
               map.parameters);
    left -= run;
    at.index[inner] = 0;
    for (int d = inner - 1; d >= 0 && ++at.index[d] == loop.size[d]; --d) at.index[d] = 0;
  }
}

inline void run_buffered(const MapPlan& plan, std::int64_t begin, std::int64_t end) {
  const Map& map = plan.map;
  const Loop& loop = map.loop;
  alignas(64) char gathered[kMaxInputs][kChunk * 8];
  alignas(64) char result[kChunk * 8];
  for (std::int64_t start = begin; start < end; start += kChunk) {
    const std::int64_t n = end - start < kChunk ? end - start : kChunk;
    const Position at = position_of(loop, start);
    Inputs in;
    for (int i = 0; i < map.inputs; ++i) {
      in.step[i] = plan.repeated[i] ? 0 : 1;
      if (plan.repeated[i]) {
        in.p[i] = plan.vector[i].bytes;
      } else if (plan.contiguous[i]) {
        in.p[i] = static_cast<const char*>(map.in[i]) + start * map.in_bytes[i];
      } else {
        gather(gathered[i], map.in[i], map.in_bytes[i], loop, 1 + i, at, n);
        in.p[i] = gathered[i];
      }
    }
    char* const out =
        plan.out_contiguous ? static_cast<char*>(map.out) + start * map.out_bytes : result;
    map.kernel(out, in, n, map.parameters);
    if (!plan.out_contiguous) scatter(result, map.out, map.out_bytes, loop, 0, at, n);
  }
}

__attribute__((noinline)) void run_large_or_strided(const Map& map, Stream& stream) {
  const MapPlan plan(map);
  const std::int64_t n = map.loop.n;
  const auto tile = [&](std::int64_t t) {
    const std::int64_t begin = t * kTile, end = begin + kTile < n ? begin + kTile : n;
    if (plan.streamed) run_streamed(plan, begin, end);
    else if (plan.flat)
      run_flat(plan, static_cast<char*>(map.out) + begin * map.out_bytes, begin, end - begin);
    else if (plan.rows) run_rows(plan, begin, end);
    else run_buffered(plan, begin, end);
  };
  if (n <= kTile) tile(0);
  else parallel_for(stream, (n + kTile - 1) / kTile, tile);
}

/// Runs the kernel over all elements.
BRAID_INLINE void run_map(const Map& map, Stream& stream) {
  if (map.loop.n <= 0) return;
  if (!map.loop.dense || map.loop.n > kTile) return run_large_or_strided(map, stream);
  Inputs in;
  Repeated vector[kMaxInputs];
  for (int i = 0; i < map.inputs; ++i) {
    in.p[i] = map.in[i];
    in.step[i] = 1;
    if (map.scalar[i]) {
      repeat(vector[i], map.in[i], map.in_bytes[i]);
      in.p[i] = vector[i].bytes;
      in.step[i] = 0;
    }
  }
  map.kernel(map.out, in, map.loop.n, map.parameters);
}

/// The body of a kernel: result lanes = f(lanes of each input …). Out is the element struct of the
/// output, In that of the inputs. All have the same number of lanes.
template <class Out, class In, class F>
BRAID_INLINE void map_one(void* out, const Inputs& in, std::int64_t n, F f) {
  constexpr int lanes = In::kLanes;
  auto* to = static_cast<typename Out::T*>(out);
  auto* a = static_cast<const typename In::T*>(in.p[0]);
  const std::int64_t step_a = in.step[0] * lanes;
  for (; n >= lanes; n -= lanes, to += lanes, a += step_a) Out::store(to, f(In::load(a)));
  if (n > 0) Out::store_first(to, f(In::load_first(a, static_cast<int>(n))), static_cast<int>(n));
}
template <class Out, class In, class F>
BRAID_INLINE void map_two(void* out, const Inputs& in, std::int64_t n, F f) {
  constexpr int lanes = In::kLanes;
  auto* to = static_cast<typename Out::T*>(out);
  auto* a = static_cast<const typename In::T*>(in.p[0]);
  auto* b = static_cast<const typename In::T*>(in.p[1]);
  const std::int64_t step_a = in.step[0] * lanes, step_b = in.step[1] * lanes;
  for (; n >= lanes; n -= lanes, to += lanes, a += step_a, b += step_b)
    Out::store(to, f(In::load(a), In::load(b)));
  if (n > 0) {
    const int k = static_cast<int>(n);
    Out::store_first(to, f(In::load_first(a, k), In::load_first(b, k)), k);
  }
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
