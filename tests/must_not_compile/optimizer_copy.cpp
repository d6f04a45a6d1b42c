// expect: use of deleted function|call to (implicitly-)?deleted (copy )?constructor
#include <braid/braid.hpp>
using namespace braid;
int main() {
  nn::Linear linear(2, 2);
  optim::SGD sgd(parameters(linear));
  optim::SGD copy = sgd;
}
