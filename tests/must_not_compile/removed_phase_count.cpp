// expect: trace::kPhases is gone
#include <braid/braid.hpp>
using namespace braid;
int main() { return static_cast<int>(std::array<double, trace::kPhases>().size()); }
