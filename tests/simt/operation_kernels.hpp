#pragma once
namespace braid::simt_tests {

void fill(float* p, float value, int n);
void copy(const float* from, float* to, int n);

}  // namespace braid::simt_tests
