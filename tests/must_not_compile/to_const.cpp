// expect: this call changes the model or tree, which is const here
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
int main() {
  const nn::Linear linear(2, 2);
  to(linear, best_device());
}
