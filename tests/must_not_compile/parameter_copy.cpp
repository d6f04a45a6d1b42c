// expect: cannot bind rvalue reference of type .*Parameter|no matching constructor for initialization of .*Parameter
#include <braid/braid.hpp>
using namespace braid;
int main() {
  nn::Linear fc(2, 2);
  auto w = fc.weight;  // would be a parameter of its own, which nothing trains
}
