// expect: the step of a captured_step returns tensors
#include <braid/braid.hpp>
using namespace braid;
int main() {
  auto step = training::captured_step(
      [](const Tensor& x) { return std::pair(x * 2, static_cast<double>(x.numel())); });
  return static_cast<int>(step(ones({2})).second);
}
