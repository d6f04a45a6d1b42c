// expect: a pointer \(shared_ptr, unique_ptr, T\*\) is not a tree: write the layer or model itself
// lines: 10
// page: docs/guides/usual_mistakes.md
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  std::shared_ptr<nn::Linear> fc = std::make_shared<nn::Linear>(4, 2);
  Tensor operator()(const Tensor& x) const { return (*fc)(x); }
  BRAID_FIELDS(fc)
};
int main() {
  Net net;
  optim::SGD optimizer(parameters(net), {.lr = 0.1});
}
