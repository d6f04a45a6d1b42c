// expect: no pointers and views of text: a replay compares them
#include <braid/braid.hpp>
using namespace braid;
int main() {
  auto step = training::captured_step(
      [](const std::pair<Tensor, std::string_view>& batch) { return batch.first; });
  return static_cast<int>(step(std::pair(ones({2}), std::string_view("a"))).numel());
}
