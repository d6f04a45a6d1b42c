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

/// The three products of a linear layer with weights W [n, k], in the names of its own sizes.
enum class Use {
  forward,  ///< C = A Bᵀ: y = x Wᵀ
  input,    ///< C = A B: dx = dy W
  weight    ///< C = Aᵀ B: dW = dyᵀ x
};

/// C[m, n] of bfloat16, with sums over k in float32; contiguous, indexed with 32 bits. A is stored
/// as [m, k], for weight as [k, m]; B as [k, n], for forward as [n, k].
struct Product {
  const void* a;
  const void* b;
  void* c;
  int m, n, k;
  Use use;
  bool large;  // as Sgemm's
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

void tensor_floats(const Product& g, Stream& stream);  // steps 1 to 5: only forward
void tensor_mma(const Product& g, Stream& stream);
void tensor_ldmatrix(const Product& g, Stream& stream);
void tensor_swizzle(const Product& g, Stream& stream);
void tensor_pipeline(const Product& g, Stream& stream);
void tensor_backward(const Product& g, Stream& stream);
void tensor_ours(const Product& g, Stream& stream);

void softmax_naive(const Softmax& s, Stream& stream);
void softmax_tree(const Softmax& s, Stream& stream);
void softmax_shuffles(const Softmax& s, Stream& stream);
void softmax_online(const Softmax& s, Stream& stream);
void softmax_registers(const Softmax& s, Stream& stream);
void softmax_ours(const Softmax& s, Stream& stream);

inline constexpr Step<Sgemm> kSgemmSteps[] = {
    {"1 naive", sgemm_naive},         {"2 coalesced", sgemm_coalesced}, {"3 shared", sgemm_shared},
    {"4 registers", sgemm_registers}, {"5 pipeline", sgemm_pipeline},   {"6 ours", sgemm_ours}};
inline constexpr Step<Product> kTensorSteps[] = {
    {"1 floats", tensor_floats},   {"2 mma", tensor_mma},           {"3 ldmatrix", tensor_ldmatrix},
    {"4 swizzle", tensor_swizzle}, {"5 pipeline", tensor_pipeline}, {"6 backward", tensor_backward},
    {"7 ours", tensor_ours}};
/// Those that compute every Use.
inline constexpr Step<Product> kBackwardSteps[] = {kTensorSteps[5], kTensorSteps[6]};
inline constexpr Step<Softmax> kSoftmaxSteps[] = {
    {"1 naive", softmax_naive},         {"2 tree", softmax_tree},
    {"3 shuffles", softmax_shuffles},   {"4 online", softmax_online},
    {"5 registers", softmax_registers}, {"6 ours", softmax_ours}};

}  // namespace ladder
}  // namespace braid
