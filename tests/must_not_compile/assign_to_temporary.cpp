// expect: passing .braid::Tensor. as .this. argument discards qualifiers|no viable overloaded '='
#include <braid/braid.hpp>
using namespace braid;
// It would rename a handle that is gone at once, and change no element: x[0].copy_(y) does that.
int main() {
  Tensor x = zeros({3, 2});
  x[0] = ones({2});
}
