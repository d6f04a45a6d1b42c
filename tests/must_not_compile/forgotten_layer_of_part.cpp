// expect: a member that can hold tensors is missing from BRAID_FIELDS of this struct
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Block : nn::Module {
  nn::Linear fc1{4, 4}, fc2{4, 4};
  BRAID_FIELDS(fc1)
};
struct Net : nn::Module {
  std::vector<std::optional<Block>> blocks;
  BRAID_FIELDS(blocks)
};
int main() {
  Net net;
  to(net, "cpu:0");
}
