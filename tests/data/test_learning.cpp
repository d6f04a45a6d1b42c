#include <braid/braid.hpp>

#include "support/on_device.hpp"

namespace braid::test::on_device {

TEST_CASE("synthetic: a small network learns to read them", "[data][synthetic][learning]") {
  manual_seed(0);
  const std::int64_t size = cut(4000, 1000), epochs = cut(8, 4), width = cut(128, 32);
  auto [train_digits, test_digits] = data::split(data::SyntheticDigits(size + 400), size);
  data::DataLoader loader(train_digits, {.batch_size = 50, .shuffle = true, .workers = 1});
  nn::Sequential model =
      home(nn::Sequential{nn::Linear(784, width), nn::ReLU(), nn::Linear(width, 10)});
  optim::AdamW optimizer(parameters(model), {.lr = 2e-3});
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (auto& [image, label] : loader) {
      optimizer.zero_grad();
      nn::cross_entropy(model(image.flatten(1).to(here())), label.to(here())).backward();
      optimizer.step();
    }
  }
  const NoGrad guard;
  data::DataLoader all(test_digits, {.batch_size = 400});
  auto batch = all.begin();
  const auto guess = model(batch->image.flatten(1).to(here())).argmax(1).to_vector<std::int64_t>();
  const auto label = batch->label.to_vector<std::int64_t>();
  int right = 0;
  for (std::size_t i = 0; i < label.size(); ++i) right += guess[i] == label[i] ? 1 : 0;
  INFO(right << " of 400");
  CHECK(right > cut(380, 300));
}

}  // namespace braid::test::on_device
