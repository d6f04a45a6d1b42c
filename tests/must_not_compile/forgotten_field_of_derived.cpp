// expect: a member that can hold tensors is missing from BRAID_FIELDS of this struct
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc1{3, 4}, fc2{4, 5};
  BRAID_FIELDS(fc1, fc2)
};
struct Big : Net {
  nn::Linear fc3{3, 4}, fc4{4, 5};
  BRAID_FIELDS_OF(Net, fc3)
};
int main() { return static_cast<int>(parameters(Big()).size()); }
