// expect: the key of a map in a tree must be a string, an integer or an enum
#include <braid/braid.hpp>
#include <map>
using namespace braid;
int main() {
  const std::map<double, Tensor> tensors;
  return static_cast<int>(tree::leaves(tensors).size());
}
