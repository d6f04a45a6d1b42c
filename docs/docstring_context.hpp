#pragma once
// What the examples in docstrings use without declaring it. docs/check_code.sh compiles each of
// them after this file; it runs none.
#include <braid/braid.hpp>

using namespace braid;

struct Net : nn::Module {
  nn::Linear fc{784, 10};
  Tensor operator()(const Tensor& x) const { return fc(x); }
  BRAID_FIELDS(fc)
};
void evaluate(const Net& net);

extern Tensor x, y, a, b, w, bias, mask, logits, labels, loss, tokens, images;
extern std::vector<Tensor> weights, biases;
extern std::int64_t epochs, batches;
extern double validation_loss;

// each example uses it: in the global namespace it would meet the function braid::device
namespace given { extern Device device; }

extern Net model;
extern optim::SGD optimizer;
extern optim::CosineSchedule schedule;
extern data::Mnist dataset;
extern data::DataLoader<data::Mnist> loader;
extern training::Options options;
extern parallel::Process process;

// of the CUDA runtime
using cudaStream_t = struct CUstream_st*;
int cudaGetLastError();
void launch_my_kernel(const Tensor& x, cudaStream_t stream);
