#include <braid/core/error.hpp>
#include <braid/core/ops/dropout.hpp>
#include <braid/nn/dropout.hpp>

#include "layers/call.hpp"

namespace braid::nn {
namespace {

double checked(const char* name, double p) {
  if (!(p >= 0 && p <= 1)) throw ArgumentError(str(name, ": expected 0 <= p <= 1, got ", p));
  return p;
}

}  // namespace

Dropout::Dropout(double probability) : p(checked("Dropout", probability)) {}
Tensor Dropout::forward(const Tensor& x) const { return dropout(x, p, training); }
BRAID_LAYER_CALL(Tensor, Dropout, (const Tensor& x), (x))
std::string Dropout::extra() const { return str("p=", p); }

Dropout1d::Dropout1d(double probability) : p(checked("Dropout1d", probability)) {}
Tensor Dropout1d::forward(const Tensor& x) const { return dropout1d(x, p, training); }
BRAID_LAYER_CALL(Tensor, Dropout1d, (const Tensor& x), (x))
std::string Dropout1d::extra() const { return str("p=", p); }

Dropout2d::Dropout2d(double probability) : p(checked("Dropout2d", probability)) {}
Tensor Dropout2d::forward(const Tensor& x) const { return dropout2d(x, p, training); }
BRAID_LAYER_CALL(Tensor, Dropout2d, (const Tensor& x), (x))
std::string Dropout2d::extra() const { return str("p=", p); }

}  // namespace braid::nn
