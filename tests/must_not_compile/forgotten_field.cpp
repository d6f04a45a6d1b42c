// expect: a member that can hold tensors is missing from BRAID_FIELDS of this struct
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc1{3, 4}, fc2{4, 5};
  int64_t k = 3;
  std::vector<nn::Linear> blocks;
  std::optional<Tensor> mask;
  BRAID_FIELDS(fc1, blocks, mask)
};
int main() { return static_cast<int>(parameters(Net()).size()); }
