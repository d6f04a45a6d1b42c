// expect: no match for call to|no matching function for call to object of type
#include <braid/braid.hpp>
using namespace braid;
// The field `check` hides the function: a compile error, not a call of the wrong thing.
struct Net : nn::Module {
  nn::Linear check{1, 1};
  Tensor operator()(const Tensor& x) const {
    check(x.size(0) == 1, "one row");
    return x;
  }
  BRAID_FIELDS(check)
};
int main() { return Net()(ones({1, 1})).dim(); }
