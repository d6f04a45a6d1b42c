// expect: RandomForward is now RandomScope
#include <braid/braid.hpp>
using namespace braid;
int main() {
  const RandomForward forward(1, {0, 0, 0, 8});
  return randn({8}).dim();
}
