// expect: this type is not a tree
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Batch {
  Tensor image;  // no BRAID_FIELDS
};
int main() { (void)parallel::scatter(Batch{ones({2, 2})}, devices()); }
