#pragma once
#include "simt/simt.hpp"

// Small kernels for programs of streams.
namespace braid::streams_test {

__global__ void fill(float* to, int n, float value);
__global__ void copy_values(float* to, const float* from, int n);
__global__ void write_past_end(float* to, int n);

}  // namespace braid::streams_test
