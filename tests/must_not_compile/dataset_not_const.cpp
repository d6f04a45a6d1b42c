// expect: size\(\) and get\(index\) of this dataset must be const
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
struct Rows {
  int64_t size() const { return 4; }
  data::Labelled get(int64_t) { return {ones({2}), ones({})}; }
};
int main() {
  data::DataLoader loader(Rows{}, {.batch_size = 2});
  for (auto& [image, label] : loader) print(image, label);
}
