#pragma once
#include "cpu/simd/elements.hpp"

// Copies of parts of a matrix for the inner loops: rows made contiguous, widened from 16 bits to
// float, or transposed.
namespace braid::cpu::BRAID_ISA {
namespace {

/// The type in which an element type is computed: float for the 16-bit formats.
template <class E> using Computed = Lane<typename E::V>;

/// to[i * to_row + j] = from[i * from_row + j], widened, for i < rows, j < cols.
template <class E>
void copy_rows(const typename E::T* from, std::int64_t from_row, std::int64_t rows,
               std::int64_t cols, Computed<E>* to, std::int64_t to_row) {
  constexpr int lanes = E::kLanes;
  for (std::int64_t i = 0; i < rows; ++i, from += from_row, to += to_row) {
    std::int64_t j = 0;
    for (; j + lanes <= cols; j += lanes) store(to + j, E::load(from + j));
    if (j < cols)
      store_first(to + j, E::load_first(from + j, static_cast<int>(cols - j)),
                  static_cast<int>(cols - j));
  }
}

constexpr int kTransposed = 8;  // side of the square that is transposed in registers

/// Transposes a square: to[j * to_row + i] = from[i * from_row + j] for i, j < kTransposed.
BRAID_INLINE void transpose_square(const float* from, std::int64_t from_row, float* to,
                                   std::int64_t to_row) {
#if BRAID_VECTOR_BYTES >= 32
  // Loading halves puts rows i and i + 4 in one register, so that no shuffle crosses the halves.
  __m256 r[8];
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * from_row)),
                                _mm_loadu_ps(from + (i + 4) * from_row), 1);
    r[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * from_row + 4)),
                                    _mm_loadu_ps(from + (i + 4) * from_row + 4), 1);
  }
  for (int half = 0; half < 2; ++half) {
    const __m256 a = r[4 * half], b = r[4 * half + 1], c = r[4 * half + 2], d = r[4 * half + 3];
    const __m256 ab_low = _mm256_unpacklo_ps(a, b), ab_high = _mm256_unpackhi_ps(a, b),
                 cd_low = _mm256_unpacklo_ps(c, d), cd_high = _mm256_unpackhi_ps(c, d);
    float* out = to + 4 * half * to_row;
    _mm256_storeu_ps(out, _mm256_shuffle_ps(ab_low, cd_low, 0x44));
    _mm256_storeu_ps(out + to_row, _mm256_shuffle_ps(ab_low, cd_low, 0xee));
    _mm256_storeu_ps(out + 2 * to_row, _mm256_shuffle_ps(ab_high, cd_high, 0x44));
    _mm256_storeu_ps(out + 3 * to_row, _mm256_shuffle_ps(ab_high, cd_high, 0xee));
  }
#elif defined(__SSE2__)
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 8; j += 4) {
      const float* in = from + i * from_row + j;
      __m128 a = _mm_loadu_ps(in), b = _mm_loadu_ps(in + from_row),
             c = _mm_loadu_ps(in + 2 * from_row), d = _mm_loadu_ps(in + 3 * from_row);
      _MM_TRANSPOSE4_PS(a, b, c, d);
      float* out = to + j * to_row + i;
      _mm_storeu_ps(out, a);
      _mm_storeu_ps(out + to_row, b);
      _mm_storeu_ps(out + 2 * to_row, c);
      _mm_storeu_ps(out + 3 * to_row, d);
    }
#else
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) to[j * to_row + i] = from[i * from_row + j];
#endif
}
BRAID_INLINE void transpose_square(const double* from, std::int64_t from_row, double* to,
                                   std::int64_t to_row) {
  for (int i = 0; i < 8; i += 2)
    for (int j = 0; j < 8; ++j) {
      to[j * to_row + i] = from[i * from_row + j];
      to[j * to_row + i + 1] = from[(i + 1) * from_row + j];
    }
}

/// to[j * to_row + i] = from[i * from_row + j], for i < rows, j < cols.
template <class T>
void transpose(const T* from, std::int64_t from_row, std::int64_t rows, std::int64_t cols, T* to,
               std::int64_t to_row) {
  std::int64_t i = 0;
  for (; i + kTransposed <= rows; i += kTransposed) {
    std::int64_t j = 0;
    for (; j + kTransposed <= cols; j += kTransposed)
      transpose_square(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
    for (; j < cols; ++j)
      for (std::int64_t r = i; r < i + kTransposed; ++r)
        to[j * to_row + r] = from[r * from_row + j];
  }
  for (; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) to[j * to_row + i] = from[i * from_row + j];
}

/// The same with widening: a strip of rows is widened first.
template <class E>
void transpose_rows(const typename E::T* from, std::int64_t from_row, std::int64_t rows,
                    std::int64_t cols, Computed<E>* to, std::int64_t to_row) {
  if constexpr (std::is_same_v<typename E::T, Computed<E>>) {
    transpose(from, from_row, rows, cols, to, to_row);
  } else {
    constexpr std::int64_t kStrip = 128;
    Computed<E> strip[kTransposed * kStrip];
    for (std::int64_t i = 0; i < rows; i += kTransposed)
      for (std::int64_t j = 0; j < cols; j += kStrip) {
        const std::int64_t height = rows - i < kTransposed ? rows - i : kTransposed,
                           width = cols - j < kStrip ? cols - j : kStrip;
        copy_rows<E>(from + i * from_row + j, from_row, height, width, strip, kStrip);
        transpose(strip, kStrip, height, width, to + j * to_row + i, to_row);
      }
  }
}

}  // namespace
}  // namespace braid::cpu::BRAID_ISA
