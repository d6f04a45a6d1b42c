// expect: a DataParallel needs no option for ReplicatedOptimizer
#include <braid/braid.hpp>
using namespace braid;
int main() {
  parallel::DataParallel model(nn::Linear(1, 1), devices(),
                               parallel::DataParallelOptions{.update = parallel::Update::local});
}
