// expect: no matching function for call to .tensor
#include <braid/braid.hpp>
using namespace braid;
// A vector of vectors may be ragged; nested braces are taken, vectors of numbers are.
int main() {
  const std::vector<std::vector<float>> rows{{1, 2}, {3, 4}};
  return tensor(rows).dim();
}
