// expect: BRAID_FIELDS of this class is private: write public: before it, or make the class a struct
// lines: 10
// page: docs/guides/usual_mistakes.md
#include <braid/braid.hpp>
using namespace braid;
class Net : public nn::Module {
  nn::Linear fc{4, 2};
  BRAID_FIELDS(fc)
};
int main() {
  Net net;
  optim::SGD optimizer(parameters(net), {.lr = 0.1});
}
