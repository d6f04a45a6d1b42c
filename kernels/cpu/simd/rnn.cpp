#include <braid/core/kernel_args/rnn.hpp>

#include "cpu/errors.hpp"
#include "cpu/runtime/parallel.hpp"
#include "cpu/simd/elements.hpp"
#include "cpu/simd/math.hpp"

extern "C" double tanh(double);  // C's function, which the op tanh uses too

// The steps of recurrent layers: one pass computes the activations from the gates and the states
// after the step. Also the gradients of that.
namespace braid::cpu::BRAID_ISA {
namespace {

BRAID_INLINE VF tanh_of(VF x) { return tanh(x); }
BRAID_INLINE VD tanh_of(VD x) {
  VD y;
  for (int i = 0; i < kDoubleLanes; ++i) y[i] = ::tanh(x[i]);
  return y;
}

/// Calls f(row, begin, end) for pieces of the rows; the split depends on the sizes alone.
template <class F>
BRAID_INLINE void for_cells(std::int64_t batch, std::int64_t hidden, Stream& stream, F f) {
  constexpr std::int64_t kPiece = 1024;  // cells per piece: some microseconds of work
  if (batch <= 0 || hidden <= 0) return;
  // pieces of a row; rows of a tile
  const std::int64_t pieces = (hidden + kPiece - 1) / kPiece,
                     rows = hidden >= kPiece ? 1 : kPiece / hidden;
  const std::int64_t tiles = pieces * ((batch + rows - 1) / rows);
  const auto tile = [&](std::int64_t t) {
    const std::int64_t first = t / pieces * rows, begin = t % pieces * kPiece;
    const std::int64_t last = first + rows < batch ? first + rows : batch,
                       end = begin + kPiece < hidden ? begin + kPiece : hidden;
    for (std::int64_t row = first; row < last; ++row) f(row, begin, end);
  };
  if (tiles == 1) return tile(0);
  parallel_for(stream, tiles, tile);
}

/// Calls f(i, k) for whole vectors (k = lanes) and the rest of [begin, end).
template <class E, class F>
BRAID_INLINE void for_vectors(std::int64_t begin, std::int64_t end, F f) {
  for (; begin + E::kLanes <= end; begin += E::kLanes) f(begin, E::kLanes);
  if (begin < end) f(begin, static_cast<int>(end - begin));
}
template <class E> BRAID_INLINE typename E::V get(const typename E::T* p, int k) {
  return k == E::kLanes ? E::load(p) : E::load_first(p, k);
}
template <class E> BRAID_INLINE void put(typename E::T* p, typename E::V v, int k) {
  if (k == E::kLanes) E::store(p, v);
  else E::store_first(p, v, k);
}

/// Row `row` of an optional matrix; null if the matrix is.
template <class T> BRAID_INLINE T* row_of(void* p, std::int64_t row, std::int64_t width) {
  return p == nullptr ? nullptr : static_cast<T*>(p) + row * width;
}
template <class T>
BRAID_INLINE const T* row_of(const void* p, std::int64_t row, std::int64_t width) {
  return p == nullptr ? nullptr : static_cast<const T*>(p) + row * width;
}
template <class A> BRAID_INLINE bool past_end(const A& args, std::int64_t row) {
  return args.lengths != nullptr && args.lengths[row] <= args.step;
}

template <class E> void cell_of(const RnnCellArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  const std::int64_t n = args.hidden, width = gates_of(args.kind) * n;
  for_cells(args.batch, n, stream, [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
    T* const gates = row_of<T>(args.gates, row, width);
    const T* const hidden_gates = row_of<T>(args.hidden_gates, row, width);
    const T* const h_before = row_of<T>(args.h_before, row, n);
    const T* const c_before = row_of<T>(args.c_before, row, n);
    T* const h = row_of<T>(args.h, row, n);
    T* const c = row_of<T>(args.c, row, n);
    if (past_end(args, row)) {
      const std::size_t bytes = static_cast<std::size_t>(end - begin) * sizeof(T);
      __builtin_memcpy(h + begin, h_before + begin, bytes);
      if (args.kind == RnnKind::lstm) __builtin_memcpy(c + begin, c_before + begin, bytes);
      return;
    }
    switch (args.kind) {
      case RnnKind::tanh:
        return for_vectors<E>(begin, end, [&](std::int64_t i, int k) {
          put<E>(h + i, tanh_of(get<E>(gates + i, k)), k);
        });
      case RnnKind::relu:
        return for_vectors<E>(begin, end, [&](std::int64_t i, int k) {
          const V x = get<E>(gates + i, k);
          put<E>(h + i, x <= V{} ? V{} : x, k);  // a NaN fails the comparison and stays
        });
      case RnnKind::lstm:
        return for_vectors<E>(begin, end, [&](std::int64_t j, int k) {
          const V i = sigmoid(get<E>(gates + j, k)), f = sigmoid(get<E>(gates + n + j, k)),
                  g = tanh_of(get<E>(gates + 2 * n + j, k)),
                  o = sigmoid(get<E>(gates + 3 * n + j, k));
          const V state = f * get<E>(c_before + j, k) + i * g;
          put<E>(gates + j, i, k), put<E>(gates + n + j, f, k), put<E>(gates + 2 * n + j, g, k),
              put<E>(gates + 3 * n + j, o, k);
          put<E>(c + j, state, k);
          put<E>(h + j, o * tanh_of(state), k);
        });
      case RnnKind::gru:
        return for_vectors<E>(begin, end, [&](std::int64_t j, int k) {
          const V r = sigmoid(get<E>(gates + j, k) + get<E>(hidden_gates + j, k)),
                  z = sigmoid(get<E>(gates + n + j, k) + get<E>(hidden_gates + n + j, k));
          const V fresh =
              tanh_of(get<E>(gates + 2 * n + j, k) + r * get<E>(hidden_gates + 2 * n + j, k));
          put<E>(gates + j, r, k), put<E>(gates + n + j, z, k), put<E>(gates + 2 * n + j, fresh, k);
          put<E>(h + j, fresh + z * (get<E>(h_before + j, k) - fresh), k);
        });
    }
  });
}

template <class E> void cell_backward_of(const RnnCellBackwardArgs& args, Stream& stream) {
  using T = typename E::T;
  using V = typename E::V;
  const std::int64_t n = args.hidden, count = gates_of(args.kind), width = count * n;
  for_cells(args.batch, n, stream, [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
    const T* const gates = row_of<T>(args.gates, row, width);
    const T* const hidden_gates = row_of<T>(args.hidden_gates, row, width);
    const T* const h_before = row_of<T>(args.h_before, row, n);
    const T* const h = row_of<T>(args.h, row, n);
    const T* const c_before = row_of<T>(args.c_before, row, n);
    const T* const c = row_of<T>(args.c, row, n);
    const T* const dy = row_of<T>(args.dy, row, n);
    T* const dh = row_of<T>(args.dh, row, n);
    T* const dc = row_of<T>(args.dc, row, n);
    T* const dgates = row_of<T>(args.dgates, row, width);
    T* const dhidden_gates = row_of<T>(args.dhidden_gates, row, width);
    const auto arriving = [&](std::int64_t i, int k) {
      const V sum = get<E>(dh + i, k);
      return dy == nullptr ? sum : sum + get<E>(dy + i, k);
    };
    if (past_end(args, row))
      return for_vectors<E>(begin, end, [&](std::int64_t i, int k) {
        put<E>(dh + i, arriving(i, k), k);
        for (std::int64_t gate = 0; gate < count; ++gate) {
          put<E>(dgates + gate * n + i, V{}, k);
          if (dhidden_gates != nullptr) put<E>(dhidden_gates + gate * n + i, V{}, k);
        }
      });
    switch (args.kind) {
      case RnnKind::tanh:
        return for_vectors<E>(begin, end, [&](std::int64_t i, int k) {
          const V y = get<E>(h + i, k);
          put<E>(dgates + i, arriving(i, k) * (1 - y * y), k);
          put<E>(dh + i, V{}, k);
        });
      case RnnKind::relu:
        return for_vectors<E>(begin, end, [&](std::int64_t i, int k) {
          put<E>(dgates + i, get<E>(h + i, k) <= V{} ? V{} : arriving(i, k), k);
          put<E>(dh + i, V{}, k);
        });
      case RnnKind::lstm:
        return for_vectors<E>(begin, end, [&](std::int64_t j, int k) {
          const V i = get<E>(gates + j, k), f = get<E>(gates + n + j, k),
                  g = get<E>(gates + 2 * n + j, k), o = get<E>(gates + 3 * n + j, k);
          const V before = get<E>(c_before + j, k), squashed = tanh_of(get<E>(c + j, k)),
                  d = arriving(j, k);
          const V dstate = get<E>(dc + j, k) + d * o * (1 - squashed * squashed);
          put<E>(dgates + j, dstate * g * (i * (1 - i)), k);
          put<E>(dgates + n + j, dstate * before * (f * (1 - f)), k);
          put<E>(dgates + 2 * n + j, dstate * i * (1 - g * g), k);
          put<E>(dgates + 3 * n + j, d * squashed * (o * (1 - o)), k);
          put<E>(dc + j, dstate * f, k);
          put<E>(dh + j, V{}, k);
        });
      case RnnKind::gru:
        return for_vectors<E>(begin, end, [&](std::int64_t j, int k) {
          const V r = get<E>(gates + j, k), z = get<E>(gates + n + j, k),
                  fresh = get<E>(gates + 2 * n + j, k), d = arriving(j, k);
          const V dfresh = d * (1 - z) * (1 - fresh * fresh),
                  dz = d * (get<E>(h_before + j, k) - fresh) * (z * (1 - z));
          const V dr = dfresh * get<E>(hidden_gates + 2 * n + j, k) * (r * (1 - r));
          put<E>(dgates + j, dr, k), put<E>(dgates + n + j, dz, k),
              put<E>(dgates + 2 * n + j, dfresh, k);
          put<E>(dhidden_gates + j, dr, k), put<E>(dhidden_gates + n + j, dz, k),
              put<E>(dhidden_gates + 2 * n + j, dfresh * r, k);
          put<E>(dh + j, d * z, k);
        });
    }
  });
}

}  // namespace

void rnn_cell(const RnnCellArgs& args, Stream& stream) {
  if (args.dtype == DType::float32) return cell_of<F32>(args, stream);
  if (args.dtype == DType::float64) return cell_of<F64>(args, stream);
  fail_dtype("rnn_cell", "float32 or float64", args.dtype);
}

void rnn_cell_backward(const RnnCellBackwardArgs& args, Stream& stream) {
  if (args.dtype == DType::float32) return cell_backward_of<F32>(args, stream);
  if (args.dtype == DType::float64) return cell_backward_of<F64>(args, stream);
  fail_dtype("rnn_cell_backward", "float32 or float64", args.dtype);
}

}  // namespace braid::cpu::BRAID_ISA
