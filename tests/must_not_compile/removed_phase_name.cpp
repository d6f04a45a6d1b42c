// expect: name_of\(phase\) is now phase.name\(\)
#include <braid/braid.hpp>
using namespace braid;
int main() { return *trace::name_of(trace::Phase::step); }
