// expect: no matching function for call to .*sum|no matching member function for call to 'sum'
#include <braid/braid.hpp>
using namespace braid;
// true could be keepdim, or the dim 1.
int main() { return ones({2, 3}).sum(true).dim(); }
