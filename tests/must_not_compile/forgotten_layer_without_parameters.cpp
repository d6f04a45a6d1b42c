// expect: a member that can hold tensors is missing from BRAID_FIELDS of this struct
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc{3, 4};
  nn::ReLU act;
  BRAID_FIELDS(fc)
};
int main() {
  Net net;
  eval(net);
}
