// expect: this class derives from nn::Module privately: write struct, or class Net : public nn::Module
// lines: 10
// page: docs/guides/usual_mistakes.md
#include <braid/braid.hpp>
using namespace braid;
class Net : nn::Module {
 public:
  nn::Linear fc{4, 2};
  nn::Dropout dropout;
  BRAID_FIELDS(fc, dropout)
};
int main() {
  Net net;
  eval(net);
}
