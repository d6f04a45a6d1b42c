// expect: a field is registered by its name in BRAID_FIELDS\(fc1, fc2\), and initialised where it is declared: nn::Linear fc1\{4, 2\};
// lines: 10
// page: docs/guides/usual_mistakes.md
#include <braid/braid.hpp>
using namespace braid;
struct Net : nn::Module {
  nn::Linear fc{4, 2};
  Net() { register_module("fc", fc); }
};
