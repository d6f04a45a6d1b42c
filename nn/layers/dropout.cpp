#include <braid/core/error.hpp>
#include <braid/core/ops/dropout.hpp>
#include <braid/nn/dropout.hpp>

namespace braid::nn {
namespace {

double checked(const char* name, double p) {
  if (!(p >= 0 && p <= 1)) throw ArgumentError(str(name, ": expected 0 <= p <= 1, got ", p));
  return p;
}

}  // namespace

Dropout::Dropout(double probability) : p(checked("Dropout", probability)) {}
Tensor Dropout::operator()(const Tensor& x) const { return dropout(x, p, training); }
std::string Dropout::extra() const { return str("p=", p); }

Dropout1d::Dropout1d(double probability) : p(checked("Dropout1d", probability)) {}
Tensor Dropout1d::operator()(const Tensor& x) const { return dropout1d(x, p, training); }
std::string Dropout1d::extra() const { return str("p=", p); }

Dropout2d::Dropout2d(double probability) : p(checked("Dropout2d", probability)) {}
Tensor Dropout2d::operator()(const Tensor& x) const { return dropout2d(x, p, training); }
std::string Dropout2d::extra() const { return str("p=", p); }

}  // namespace braid::nn
