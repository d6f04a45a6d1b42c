// expect: use of deleted function|call to deleted constructor
#include <braid/braid.hpp>
using namespace braid;
// A model is moved in, or cloned before: nobody trains one and evaluates the other.
int main() {
  nn::Linear model(1, 1);
  parallel::DataParallel parallel_model(model);
}
