// expect: default_device\(\) is now best_device\(\)
#include <braid/braid.hpp>
using namespace braid;
int main() { return default_device().index(); }
