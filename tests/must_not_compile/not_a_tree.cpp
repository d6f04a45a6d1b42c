// expect: this type is not a tree: list its fields with BRAID_FIELDS\(\.\.\.\)
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc1{3, 4};
};
int main() {
  Net net;
  optim::SGD sgd(parameters(net), {.lr = 0.1});
}
