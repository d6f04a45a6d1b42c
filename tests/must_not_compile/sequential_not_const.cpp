// expect: operator\(\) of this model is not const: write Tensor operator\(\)\(const Tensor& x\) const
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc{4, 2};
  Tensor operator()(const Tensor& x) { return fc(x); }
  BRAID_FIELDS(fc)
};
int main() { return nn::Sequential{Net{}, nn::ReLU()}(randn({8, 4})).dim(); }
