// expect: base operand of '->' has non-pointer type|is not a pointer
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
int main() {
  nn::Linear fc(4, 2);
  return fc->forward(randn({8, 4})).dim();
}
