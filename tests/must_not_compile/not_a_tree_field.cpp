// expect: BRAID_FIELDS\(\.\.\.\), or, if it holds no tensors, say so: template <> inline constexpr bool braid::tree::plain<Type> = true;
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Part {
  nn::Linear fc1{3, 4};
};
struct Net : nn::Module {
  Part part;
  BRAID_FIELDS(part)
};
int main() { return static_cast<int>(parameters(Net()).size()); }
