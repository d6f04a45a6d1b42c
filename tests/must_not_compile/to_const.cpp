// expect: to\(tree, device\) changes the tree, which is const here
#include <braid/braid.hpp>
using namespace braid;
int main() {
  const nn::Linear linear(2, 2);
  to(linear, best_device());
}
