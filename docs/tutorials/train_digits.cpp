// Trains a small network on handwritten digits over all devices, and prints its accuracy on unseen
// digits.
//   BRAID_CPU_DEVICES=2 BRAID_DATA=<folder with the MNIST files> ./train_digits
//   ./train_digits 192 2 25
// The second form trains on 192 digits for 2 epochs, and requires 25 % accuracy on up to 192 unseen
// ones. It is for emulated devices.
#include <braid/braid.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

using namespace braid;

struct Plan {
  int64_t training = 9000;
  int epochs = 8;
  double bar = 93.5;  // percent of the unseen digits
};

/// Returns the percentage of the digits that the model classifies correctly.
template <class Model, class Digits>
double percent_right(const Model& model, const Digits& digits) {
  const NoGrad guard;
  int64_t right = 0;
  for (auto& [image, label] : data::DataLoader(digits, {.batch_size = 250})) {
    const Tensor read = model(image.flatten(1)),
                 hits = eq(read.argmax(1).to(label.device()), label).sum();
    right += hits.item<int64_t>();
  }
  return 100.0 * static_cast<double>(right) / static_cast<double>(digits.size());
}

/// Trains on the first digits and tests on as many of the rest, if there are so many. Returns true
/// if at least `bar` percent of these are classified correctly.
template <class Digits> bool run(const Digits& all, const Plan& plan) {
  auto [digits, rest] = data::split(all, plan.training);
  auto [unseen, unused] = data::split(rest, std::min(plan.training, rest.size()));
  data::DataLoader loader(digits, {.batch_size = 64, .shuffle = true});

  parallel::DataParallel model(
      nn::Sequential{nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 10)});
  to(model, best_device());
  optim::AdamW optimizer(parameters(model), {.lr = 1e-3});
  print("Training on ", digits.size(), " digits over ", device_count(),
        (device_count() == 1 ? " device" : " devices"));

  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (int epoch = 1; epoch <= plan.epochs; ++epoch) {
    double loss_sum = 0;
    for (auto& [image, label] : loader) {
      Tensor loss =
          nn::cross_entropy(model(image.flatten(1).to(best_device())), label.to(best_device()));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      loss_sum += loss.item<double>();
    }
    std::printf("epoch %d/%d  loss %.4f  %.1f s\n", epoch, plan.epochs,
                loss_sum / static_cast<double>(loader.batches()), seconds());
    std::fflush(stdout);
  }
  const double training_seconds = seconds(), right = percent_right(model, unseen);
  std::printf("trained in %.1f s, accuracy on %lld unseen digits: %.1f %% (bar %.1f %%)\n",
              training_seconds, static_cast<long long>(unseen.size()), right, plan.bar);
  return right >= plan.bar;
}

int main(int count, char** arguments) {
  manual_seed(0);
  const bool short_run = count == 4;
  Plan plan;
  if (short_run)
    plan = {std::atoll(arguments[1]), std::atoi(arguments[2]), std::atof(arguments[3])};
  try {
    const std::optional<data::Mnist> mnist = data::find_mnist();
    if (!mnist)
      print(
          "No MNIST digits here (BRAID_DATA names no folder with them): training on digits drawn "
          "by a program instead");
    if (!mnist && !short_run) plan.bar = 95;
    const bool good =
        mnist ? run(*mnist, plan) : run(data::SyntheticDigits(plan.training + 1000), plan);
    return good ? 0 : 1;
  } catch (const Error& e) {
    std::fprintf(stderr, "train_digits: %s\n", e.what());
    return 1;
  }
}
