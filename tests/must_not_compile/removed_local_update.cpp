// expect: LocalUpdate is now ReplicatedOptimizer
#include <braid/braid.hpp>
using namespace braid;
int main() {
  parallel::DataParallel model(nn::Linear(1, 1));
  parallel::LocalUpdate optimizer(
      model, [](const std::vector<Tensor>& p) { return optim::SGD(p, {.lr = 0.1}); });
}
