#pragma once
#include "simt/simt.hpp"

// Small kernels for the programs with streams.
namespace braid::streams_test {

__global__ void fill(float* to, int n, float value);
__global__ void copy_values(float* to, const float* from, int n);
__global__ void write_past_end(float* to, int n);
/// Host code in the same file as the kernels.
float first_on_host(const float* p);
void set_on_host(float* p);

}  // namespace braid::streams_test
