// expect: this struct inherits BRAID_FIELDS from its base and lists none of its own; write BRAID_FIELDS_OF\(Base, own, fields\)
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc1{3, 4};
  BRAID_FIELDS(fc1)
};
struct Big : Net {
  nn::Linear fc2{3, 4};
};
int main() { return static_cast<int>(parameters(Big()).size()); }
