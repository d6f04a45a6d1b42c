// expect: cannot bind rvalue reference of type .*Buffer|no matching constructor for initialization of .*Buffer
#include <braid/braid.hpp>
using namespace braid;
static double first(nn::Buffer mean) { return mean.item<double>(); }
int main() {
  nn::BatchNorm1d norm(1);
  return static_cast<int>(first(norm.running_mean));
}
