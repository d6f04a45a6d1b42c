// expect: a DataParallel owns its model: write std::move\(model\), or clone\(model\)
// lines: 10
// page: docs/guides/usual_mistakes.md
#include <braid/braid.hpp>
using namespace braid;
int main() {
  nn::Linear model(4, 2);
  parallel::DataParallel parallel_model(model);
}
