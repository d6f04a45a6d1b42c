// expect: a DataParallel inside a DataParallel
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  parallel::DataParallel<nn::Linear> block{nn::Linear(1, 1)};
  Tensor operator()(const Tensor& x) const { return block(x); }
  BRAID_FIELDS(block)
};
int main() { parallel::DataParallel parallel_model(Net{}); }
