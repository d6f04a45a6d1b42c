// expect: an optimizer takes the parameters of a model: write parameters\(model\)
// lines: 10
// page: docs/guides/usual_mistakes.md
#include <braid/braid.hpp>
using namespace braid;
int main() {
  nn::Linear model(4, 2);
  optim::Adam optimizer(model, {.lr = 1e-3});
}
