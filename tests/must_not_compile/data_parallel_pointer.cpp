// expect: a pointer \(shared_ptr, unique_ptr, T\*\) is not a tree: write the layer or model itself
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
int main() {
  auto model = std::make_shared<nn::Linear>(4, 2);
  parallel::DataParallel parallel_model(model);
}
