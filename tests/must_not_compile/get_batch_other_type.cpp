// expect: get_batch of this dataset takes or gives something else than a batch of its items
#include <braid/braid.hpp>
using namespace braid;
struct Rows {
  [[nodiscard]] int64_t size() const { return 4; }
  [[nodiscard]] data::Labelled get(int64_t) const { return {ones({2}), ones({})}; }
  [[nodiscard]] std::pair<Tensor, Tensor> get_batch(std::span<const int64_t>) const {
    return {ones({4, 2}), ones({4})};
  }
};
int main() {
  data::DataLoader loader(Rows{}, {.batch_size = 2});
  for (auto& batch : loader) print(batch.image);
}
