// A network learns to balance a pole on a cart by trying, over all devices. It estimates what each
// push will be worth (deep Q-learning: Mnih et al. 2015, doi:10.1038/nature14236; the target's
// choice by the online network: van Hasselt et al. 2015, arXiv:1509.06461).
//   BRAID_CPU_DEVICES=2 ./dqn --picture learning.png
// --help lists the options.
#include <braid/braid.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

using namespace braid;

struct Options : training::Options {
  std::int64_t episodes = 600, width = 128, memory = 20'000, tests = 100;
  double discount = 0.99, bar = 195;
  std::string picture;
};

/// The cart and the pole of Barto, Sutton & Anderson 1983, with the numbers of Gym's CartPole-v0:
/// pushed by 10 N to the left or right 50 times a second. Each step that the pole stands is worth
/// 1. An episode ends when the pole leans by more than 12 degrees, the cart leaves the track, or
/// after 200 steps.
struct CartPole {
  static constexpr std::int64_t kLimit = 200;
  static constexpr double kGravity = 9.8, kCart = 1, kPole = 0.1, kHalfLength = 0.5, kForce = 10,
                          kSeconds = 0.02, kTrack = 2.4, kLean = 12 * 3.14159265358979 / 180;
  double x = 0, speed = 0, angle = 0, spin = 0;
  std::int64_t steps = 0;

  CartPole() {
    const std::vector<double> start = uniform({4}, -0.05, 0.05).to_vector<double>();
    x = start[0], speed = start[1], angle = start[2], spin = start[3];
  }
  Tensor state() const {
    return tensor(std::vector<float>{static_cast<float>(x), static_cast<float>(speed),
                                     static_cast<float>(angle), static_cast<float>(spin)});
  }
  void push(bool right) {
    const double sine = std::sin(angle), cosine = std::cos(angle), all = kCart + kPole,
                 force = (right ? kForce : -kForce) + kPole * kHalfLength * spin * spin * sine,
                 turn = (kGravity * sine - cosine * force / all) /
                        (kHalfLength * (4.0 / 3 - kPole * cosine * cosine / all)),
                 acceleration = (force - kPole * kHalfLength * turn * cosine) / all;
    x += kSeconds * speed;
    speed += kSeconds * acceleration;
    angle += kSeconds * spin;
    spin += kSeconds * turn;
    ++steps;
  }
  bool failed() const { return std::abs(x) > kTrack || std::abs(angle) > kLean; }
  bool ended() const { return failed() || steps >= kLimit; }
};

/// What happened in a step, or in each step of a batch.
struct Steps {
  Tensor state, action, next;  // [n, 4], [n, 1] int64, [n, 4]
  Tensor goes_on;              // [n, 1]: 0 if the pole fell. Reaching the limit is no fall
};

/// The newest steps.
struct Memory {
  Steps all;
  std::int64_t capacity, written = 0;
  explicit Memory(std::int64_t n)
      : all{zeros({n, 4}), zeros({n, 1}, {.dtype = DType::int64}), zeros({n, 4}), zeros({n, 1})},
        capacity(n) {}
  void add(const Tensor& state, std::int64_t action, const Tensor& next, bool goes_on) {
    const std::int64_t at = written++ % capacity;
    all.state[at].copy_(state);
    all.action[at].fill_(action);
    all.next[at].copy_(next);
    all.goes_on[at].fill_(goes_on ? 1 : 0);
  }
  Steps sample(std::int64_t n) const {
    const Tensor at = randint(0, std::min(written, capacity), {n});
    const Device device = best_device();
    return {all.state[at].to(device), all.action[at].to(device), all.next[at].to(device),
            all.goes_on[at].to(device)};
  }
};

/// What the next pushes, to the left or right, are worth: [n, 4] -> [n, 2].
auto network(std::int64_t width) {
  return parallel::DataParallel(nn::Sequential{nn::Linear(4, width), nn::ReLU(),
                                               nn::Linear(width, width), nn::ReLU(),
                                               nn::Linear(width, 2)});
}

template <class Model> bool best_push(const Model& model, const CartPole& world) {
  const NoGrad guard;
  return model(world.state().unsqueeze(0).to(best_device())).argmax(1).template item<bool>();
}

/// Returns the mean length of episodes in which the model chooses every push.
template <class Model> double mean_length(const Model& model, std::int64_t episodes) {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < episodes; ++i) {
    CartPole world;
    while (!world.ended()) world.push(best_push(model, world));
    sum += world.steps;
  }
  return static_cast<double>(sum) / static_cast<double>(episodes);
}

/// The loss of the model's estimates. What a step is worth is 1, and what the best push after it is
/// worth: the model chooses that push, and the target, an older copy of the model, estimates it.
template <class Model>
Tensor loss_of(const Model& model, const Model& target, const Steps& steps, double discount) {
  const auto worth = [&] {
    const NoGrad guard;
    const Tensor push = model(steps.next).argmax(1, true);
    return 1.0 + discount * steps.goes_on * gather(target(steps.next), 1, push);
  };
  return nn::huber_loss(gather(model(steps.state), 1, steps.action), worth());
}

/// Draws the lengths of the episodes as a row of bars, three pixels wide.
void draw(const std::vector<double>& lengths, const std::string& file) {
  const Tensor height = arange(CartPole::kLimit, 0, -1).unsqueeze(1),
               bars = ge(tensor(lengths).unsqueeze(0), height);
  data::write_png(file, where(bars, 0.2, 1.0).unsqueeze(2).expand({-1, -1, 3}).flatten(1));
}

bool run(const Options& options) {
  auto model = network(options.width), target = network(options.width);
  to(model, best_device());
  to(target, best_device());
  const std::vector<Tensor> weights = parameters(model);
  optim::Adam optimizer(weights, {.lr = options.lr});
  Memory memory(options.memory);
  print(training::summary(model).parameters, " parameters, devices: ", device_count());

  std::vector<double> lengths;
  std::int64_t updates = 0;
  for (std::int64_t episode = 1; episode <= options.episodes; ++episode) {
    // pushes at random: at first all, later 2 %
    const double random = std::max(0.02, 1 - static_cast<double>(episode) / 50);
    CartPole world;
    while (!world.ended()) {
      const Tensor before = world.state();
      const bool right = rand({}).item<double>() < random ? rand({}).item<double>() < 0.5
                                                          : best_push(model, world);
      world.push(right);
      memory.add(before, right ? 1 : 0, world.state(), !world.failed());
      if (memory.written < 8 * options.batch) continue;
      if (updates++ % 200 == 0) load_state_dict(target, state_dict(model));
      const Tensor loss = loss_of(model, target, memory.sample(options.batch), options.discount);
      optimizer.zero_grad();
      loss.backward();
      optim::clip_grad_norm_(weights, 10);
      optimizer.step();
    }
    lengths.push_back(static_cast<double>(world.steps));
    if (episode % 10 != 0) continue;
    const double mean = mean_length(model, 10);
    if (!options.quiet)
      std::printf("episode %d: %.1f steps without random pushes\n", static_cast<int>(episode),
                  mean);
    std::fflush(stdout);
    if (mean == CartPole::kLimit && mean_length(model, 50) >= CartPole::kLimit - 1) break;
  }
  if (!options.picture.empty()) draw(lengths, options.picture);
  const double mean = mean_length(model, options.tests);
  std::printf("mean of %d new episodes: %.1f steps, after %d episodes of learning\n",
              static_cast<int>(options.tests), mean, static_cast<int>(lengths.size()));
  return mean >= options.bar;
}

int main(int argc, char** argv) {
  try {
    Options options;
    static_cast<training::Options&>(options) = training::options(
        argc, argv, {.batch = 64, .lr = 5e-4},
        {{"episodes", "N", "stop learning after N, or when the pole always stands",
          &options.episodes, 1},
         {"width", "N", "of the network", &options.width, 1},
         {"memory", "N", "learn from the newest N steps", &options.memory, 1},
         {"discount", "X", "what a step is worth one step earlier", &options.discount},
         {"picture", "FILE", "a PNG with a bar for the length of each episode", &options.picture},
         {"tests", "N", "new episodes for the mean at the end", &options.tests, 1},
         {"bar", "X", "fail below this mean length", &options.bar}});
    if (!options.checkpoint.empty())
      throw ArgumentError("--checkpoint: expected none: the memory would have to be stored too");
    manual_seed(options.seed);
    return run(options) ? 0 : 1;
  } catch (...) {
    return training::report_exception(argv[0]);
  }
}
