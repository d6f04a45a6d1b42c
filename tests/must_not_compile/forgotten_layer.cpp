// expect: a member that can hold tensors is missing from BRAID_FIELDS of this struct
// lines: 10
// page: docs/guides/usual_mistakes.md
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc1{4, 8}, fc2{8, 2};
  BRAID_FIELDS(fc1)
};
int main() {
  Net net;
  optim::SGD optimizer(parameters(net), {.lr = 0.1});
}
