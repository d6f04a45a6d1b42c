// expect: this model cannot be copied, and each replica is a copy
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc{4, 2};
  Net() = default;
  Net(Net&&) = default;
  Tensor operator()(const Tensor& x) const { return fc(x); }
  BRAID_FIELDS(fc)
};
int main() {
  parallel::DataParallel model(Net{});
  return model(randn({8, 4})).dim();
}
