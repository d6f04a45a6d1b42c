// expect: shards is now DeterministicDataParallel
#include <braid/braid.hpp>
using namespace braid;
int main() {
  parallel::DataParallel model(nn::Linear(1, 1), devices(),
                               parallel::DataParallelOptions{.shards = 24});
}
