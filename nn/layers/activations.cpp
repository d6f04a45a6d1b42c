#include <braid/core/error.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/softmax.hpp>
#include <braid/nn/activations.hpp>

namespace braid::nn {

Tensor ReLU::operator()(const Tensor& x) const { return relu(x); }
Tensor Tanh::operator()(const Tensor& x) const { return tanh(x); }
Tensor Sigmoid::operator()(const Tensor& x) const { return sigmoid(x); }
Tensor Softmax::operator()(const Tensor& x) const { return softmax(x, dim); }
std::string Softmax::extra() const { return str("dim=", dim); }
Tensor LogSoftmax::operator()(const Tensor& x) const { return log_softmax(x, dim); }
std::string LogSoftmax::extra() const { return str("dim=", dim); }
Tensor Flatten::operator()(const Tensor& x) const { return x.flatten(start_dim, end_dim); }
std::string Flatten::extra() const { return str("start_dim=", start_dim, ", end_dim=", end_dim); }

}  // namespace braid::nn
