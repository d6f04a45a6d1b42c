// expect: the options of an optimizer have names: write \{\.lr = 1e-3\}
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
int main() {
  nn::Linear model(4, 2);
  optim::SGD optimizer(parameters(model), 0.1);
}
