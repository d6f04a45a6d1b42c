// expect: operator\(\) of this model, or function, does not take these arguments
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
int main() {
  parallel::DataParallel model(nn::Linear(4, 2));
  return model(randn({8, 4}), randn({8, 4})).dim();
}
