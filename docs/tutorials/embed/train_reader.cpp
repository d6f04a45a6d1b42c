// Trains the network of the digit reader on generated digits. Writes net.safetensors, digit_0.png
// to digit_9.png, digits that it was not trained on, and digits.png, which shows them in a row.
#include "net.hpp"

using namespace braid;

int main(int, char** argv) try {
  manual_seed(0);
  const auto [digits, unseen] = data::split(data::SyntheticDigits(8000), 7900);
  Net net;
  optim::AdamW optimizer(parameters(net), {.lr = 2e-3});
  data::DataLoader loader(digits, {.batch_size = 50, .shuffle = true});
  for (int epoch = 0; epoch < 8; ++epoch)
    for (auto& [image, label] : loader) {
      const Tensor loss = nn::cross_entropy(net(image.flatten(1)), label);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
  save_safetensors("net.safetensors", state_dict(net), {kFormat});

  std::vector<Tensor> ten(10);
  for (std::int64_t i = 0; i < unseen.size(); ++i) {
    const auto [image, label] = unseen.get(i);
    ten[label.item<std::size_t>()] = image;
  }
  for (std::size_t i = 0; i < ten.size(); ++i) data::write_png(str("digit_", i, ".png"), ten[i]);
  data::write_png("digits.png", data::image_grid(stack(ten), 10));
} catch (...) {
  return training::report_exception(argv[0]);
}
