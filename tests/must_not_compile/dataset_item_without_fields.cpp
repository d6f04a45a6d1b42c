// expect: this type is not a tree: list its fields with BRAID_FIELDS\(\.\.\.\)
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Item {
  Tensor image, label;
};
struct Rows {
  int64_t size() const { return 4; }
  Item get(int64_t) const { return {ones({2}), ones({})}; }
};
int main() {
  data::DataLoader loader(Rows{}, {.batch_size = 2});
  for (auto& [image, label] : loader) print(image, label);
}
