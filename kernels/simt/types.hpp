#pragma once
#include "simt/mode.hpp"

/// CUDA's vector types: the toolkit's, or ours with the same names and layouts. Ours may alias
/// other types, because kernels read four floats as one float4, which nvcc permits silently.
#if !SIMT_EMULATED
#include <vector_functions.h>
#include <vector_types.h>
#else

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  // NOLINT(google-explicit-constructor): as CUDA's
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
  // NOLINT(google-explicit-constructor)
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  // NOLINT(google-explicit-constructor)
  constexpr operator uint3() const { return {x, y, z}; }
};

// SIMT_VECTOR(int, int, 8, 16) defines int2, int3, int4 and their make_ functions, with the
// alignments of int2 and int4.
#define SIMT_VECTOR(T, name, align2, align4)                            \
  struct [[gnu::may_alias]] alignas(align2) name##2 { T x, y; };        \
  struct [[gnu::may_alias]] name##3 { T x, y, z; };                     \
  struct [[gnu::may_alias]] alignas(align4) name##4 { T x, y, z, w; };  \
  constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
SIMT_VECTOR(signed char, char, 2, 4)
SIMT_VECTOR(unsigned char, uchar, 2, 4)
SIMT_VECTOR(short, short, 4, 8)
SIMT_VECTOR(unsigned short, ushort, 4, 8)
SIMT_VECTOR(int, int, 8, 16)
SIMT_VECTOR(float, float, 8, 16)
#undef SIMT_VECTOR

struct [[gnu::may_alias]] alignas(8) uint2 {
  unsigned x, y;
};
struct [[gnu::may_alias]] alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct [[gnu::may_alias]] alignas(16) longlong2 {
  long long x, y;
};
struct [[gnu::may_alias]] alignas(16) ulonglong2 {
  unsigned long long x, y;
};
struct [[gnu::may_alias]] alignas(16) double2 {
  double x, y;
};
constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
constexpr longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
constexpr ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }
constexpr double2 make_double2(double x, double y) { return {x, y}; }

#endif
