// expect: no matching function for call to 'var'|no matching function for call to .var\(
#include <braid/braid.hpp>
using namespace braid;
// keepdim and the correction in the wrong order.
int main() { return var(ones({2, 3}), {0}, true, 0).dim(); }
