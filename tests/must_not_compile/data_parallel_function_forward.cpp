// expect: this model has no operator\(\): write what PyTorch calls forward as Tensor operator\(\)\(const Tensor& x\) const
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc{4, 2};
  Tensor forward(const Tensor& x) const { return fc(x); }
  BRAID_FIELDS(fc)
};
int main() {
  Net net;
  return parallel::data_parallel(net, randn({8, 4})).dim();
}
