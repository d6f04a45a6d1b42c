#pragma once
// The problems that the ladder's kernels solve, and the list of steps. docs/guides/ladder.md
// explains them.
namespace braid {

class Stream;

namespace ladder {

/// C[m, n] = A[m, k] B[k, n], float32, contiguous. Elements are indexed with 32 bits, enough for
/// the benchmark's sizes.
struct Sgemm {
  const float* a;
  const float* b;
  float* c;
  int m, n, k;
  bool large;  // step 6 plans it as for a product that fills the GPU
};

/// y = softmax(x) along the rows of [rows, n], float32, contiguous, indexed with 32 bits. -inf gets
/// a probability of 0; a row of only -inf becomes NaN.
struct Softmax {
  const float* x;
  float* y;
  int rows, n;
};

/// One kernel. `launch` queues it on a CUDA stream; all sizes of the problem must be at least 1.
template <class Problem> struct Step {
  const char* name;
  void (*launch)(const Problem&, Stream&);
};

void sgemm_naive(const Sgemm& g, Stream& stream);
void sgemm_coalesced(const Sgemm& g, Stream& stream);
void sgemm_shared(const Sgemm& g, Stream& stream);
void sgemm_registers(const Sgemm& g, Stream& stream);
void sgemm_pipeline(const Sgemm& g, Stream& stream);
void sgemm_ours(const Sgemm& g, Stream& stream);

void softmax_naive(const Softmax& s, Stream& stream);
void softmax_tree(const Softmax& s, Stream& stream);
void softmax_shuffles(const Softmax& s, Stream& stream);
void softmax_online(const Softmax& s, Stream& stream);
void softmax_registers(const Softmax& s, Stream& stream);
void softmax_ours(const Softmax& s, Stream& stream);

inline constexpr Step<Sgemm> kSgemmSteps[] = {
    {"1 naive", sgemm_naive},         {"2 coalesced", sgemm_coalesced}, {"3 shared", sgemm_shared},
    {"4 registers", sgemm_registers}, {"5 pipeline", sgemm_pipeline},   {"6 ours", sgemm_ours}};
inline constexpr Step<Softmax> kSoftmaxSteps[] = {
    {"1 naive", softmax_naive},         {"2 tree", softmax_tree},
    {"3 shuffles", softmax_shuffles},   {"4 online", softmax_online},
    {"5 registers", softmax_registers}, {"6 ours", softmax_ours}};

}  // namespace ladder
}  // namespace braid
