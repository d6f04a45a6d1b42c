// expect: use of deleted function .*max|call to deleted function 'max'
#include <braid/braid.hpp>
using namespace braid;
// amax(x, dims) is meant.
int main() { return max(ones({2, 3}), {0, 1}).dim(); }
