// expect: this type is not a tree: list its fields with BRAID_FIELDS\(\.\.\.\)
// lines: 10
// page: docs/guides/usual_mistakes.md
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc{4, 2};
};
int main() {
  Net net;
  optim::SGD optimizer(parameters(net), {.lr = 0.1});
}
