// expect: BRAID_FIELDS_OF of this struct names a class that is not its base
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc1{3, 4};
  BRAID_FIELDS(fc1)
};
struct Part : nn::Module {
  nn::Linear fc2{3, 4};
  BRAID_FIELDS(fc2)
};
struct Other : Part {
  BRAID_FIELDS_OF(Net)
};
int main() { return static_cast<int>(parameters(Other()).size()); }
