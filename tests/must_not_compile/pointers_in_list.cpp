// expect: a pointer \(shared_ptr, unique_ptr, T\*\) is not a tree: write the layer or model itself
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  std::vector<nn::Linear*> layers;
  BRAID_FIELDS(layers)
};
int main() {
  Net net;
  eval(net);
}
