// expect: this call changes the model or tree, which is const here
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
void validate(const nn::Linear& model) { eval(model); }
