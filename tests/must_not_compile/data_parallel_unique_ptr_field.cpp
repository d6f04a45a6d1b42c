// expect: a pointer \(shared_ptr, unique_ptr, T\*\) is not a tree: write the layer or model itself
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  std::unique_ptr<nn::Linear> fc = std::make_unique<nn::Linear>(4, 2);
  Tensor operator()(const Tensor& x) const { return (*fc)(x); }
  BRAID_FIELDS(fc)
};
int main() {
  parallel::DataParallel model(Net{});
  return model(randn({8, 4})).dim();
}
