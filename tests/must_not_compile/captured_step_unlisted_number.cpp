// expect: BRAID_FIELDS must list every field of the batch of a captured_step
#include <braid/braid.hpp>
using namespace braid;
struct Batch {
  Tensor x;
  double factor;
  BRAID_FIELDS(x)
};
int main() {
  auto step = training::captured_step([](const Batch& batch) { return batch.x * batch.factor; });
  return static_cast<int>(step(Batch{ones({2}), 2}).numel());
}
