// Trains a small network on handwritten digits over all devices, and says how well it reads digits that it has not seen.
//   BRAID_CPU_DEVICES=2 BRAID_DATA=<folder with the MNIST files> ./train_digits
#include <braid/braid.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>

using namespace braid;

constexpr int64_t kTraining = 9000;
constexpr int kEpochs = 8;

/// Percent of the digits that the model reads right.
template <class Model, class Digits>
double percent_right(const Model& model, const Digits& digits) {
  const NoGrad guard;
  int64_t right = 0;
  for (auto& [image, label] : data::DataLoader(digits, {.batch_size = 250})) {
    const Tensor read = model(image.flatten(1)), hits = eq(read.argmax(1).to(label.device()), label).sum();
    right += hits.item<int64_t>();
  }
  return 100.0 * static_cast<double>(right) / static_cast<double>(digits.size());
}

/// Trains on the first 9,000 digits, tests on the rest; true if at least `bar` percent of these are right.
template <class Digits>
bool run(const Digits& all, double bar) {
  auto [digits, unseen] = data::split(all, kTraining);
  data::DataLoader loader(digits, {.batch_size = 64, .shuffle = true});

  parallel::DataParallel model(nn::Sequential{nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 10)});
  to(model, default_device());
  optim::AdamW optimizer(parameters(model), {.lr = 1e-3});
  print("Training on ", digits.size(), " digits over ", device_count(), (device_count() == 1 ? " device" : " devices"));

  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    double loss_sum = 0;
    for (auto& [image, label] : loader) {
      Tensor loss = nn::cross_entropy(model(image.flatten(1).to(default_device())), label.to(default_device()));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      loss_sum += loss.item<double>();
    }
    std::printf("epoch %d/%d  loss %.4f  %.1f s\n", epoch, kEpochs, loss_sum / static_cast<double>(loader.batches()), seconds());
    std::fflush(stdout);
  }
  const double training_seconds = seconds(), right = percent_right(model, unseen);
  std::printf("trained in %.1f s, accuracy on %lld unseen digits: %.1f %% (bar %.1f %%)\n", training_seconds, static_cast<long long>(unseen.size()), right,
              bar);
  return right >= bar;
}

/// The digits in the folder of BRAID_DATA, none if there are no such files. Damaged ones are an error, no reason to go on without them.
std::optional<data::Mnist> find_mnist() {
  try {
    return data::Mnist();
  } catch (const IoError& e) {
    if (e.error_number != ENOENT) throw;
    print("No MNIST digits here (", e.what(), "): training on digits drawn by a program instead");
    return std::nullopt;
  }
}

int main() {
  manual_seed(0);
  try {
    const std::optional<data::Mnist> mnist = find_mnist();
    const bool good = mnist ? run(*mnist, 93.5) : run(data::SyntheticDigits(kTraining + 1000), 95.0);
    return good ? 0 : 1;
  } catch (const Error& e) {
    std::fprintf(stderr, "train_digits: %s\n", e.what());
    return 1;
  }
}
