// expect: use of deleted function .*norm|call to deleted function 'norm'
#include <braid/braid.hpp>
using namespace braid;
// Is the 1 p or a dim?
int main() { return norm(ones({2, 3}), {1}).dim(); }
