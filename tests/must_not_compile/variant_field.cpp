// expect: a std::variant of trees is not a tree
// lines: 10
#include <braid/braid.hpp>
#include <variant>
using namespace braid;
struct Net : nn::Module {
  std::variant<nn::Linear, nn::ReLU> part = nn::ReLU();
  BRAID_FIELDS(part)
};
int main() { return static_cast<int>(parameters(Net()).size()); }
