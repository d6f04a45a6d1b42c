#include <braid/braid.hpp>

#include "support/catch.hpp"

using namespace braid;

TEST_CASE("synthetic: a small network learns to read them", "[data][synthetic][learning]") {
  manual_seed(0);
  auto [train_digits, test_digits] = data::split(data::SyntheticDigits(4400), 4000);
  data::DataLoader loader(train_digits, {.batch_size = 50, .shuffle = true, .workers = 1});
  nn::Sequential model{nn::Linear(784, 128), nn::ReLU(), nn::Linear(128, 10)};
  optim::AdamW optimizer(parameters(model), {.lr = 2e-3});
  for (int epoch = 0; epoch < 8; ++epoch) {
    for (auto& [image, label] : loader) {
      optimizer.zero_grad();
      nn::cross_entropy(model(image.flatten(1)), label).backward();
      optimizer.step();
    }
  }
  const NoGrad guard;
  data::DataLoader all(test_digits, {.batch_size = 400});
  auto batch = all.begin();
  const auto guess = model(batch->image.flatten(1)).argmax(1).to_vector<std::int64_t>();
  const auto label = batch->label.to_vector<std::int64_t>();
  int right = 0;
  for (std::size_t i = 0; i < label.size(); ++i) right += guess[i] == label[i] ? 1 : 0;
  INFO(right << " of 400");
  CHECK(right > 380);
}
