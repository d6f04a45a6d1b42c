// A training program of several ranks, which kills.sh kills and resumes: the deterministic mode, so
// that it ends with the same bits for any number of ranks. TIMEOUT is the deadline of a collective
// in seconds, STEP_US a pause in each step.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "nn/train_run.hpp"

using namespace braid;

namespace {

constexpr std::int64_t kRows = 48;  // of all ranks: a multiple of 1, 2, 3 and 4
constexpr int kReplicas = 12;

double number(const char* variable, double otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atof(text);
}

int run(const training::Options& options, parallel::Process& process) {
  manual_seed(options.seed);
  data::DataLoader loader(test::Clusters{480}, {.batch_size = kRows / process.size(),
                                                .sampler = data::DistributedSampler(
                                                    process.rank(), process.size(),
                                                    {.shuffle = true, .consecutive = true}),
                                                .workers = 1});
  parallel::DistributedDataParallel model(test::SmallNet{}, process,
                                          {.virtual_replicas = kReplicas});
  optim::AdamW optimizer(parameters(model), {.lr = options.lr});
  training::Checkpoint checkpoint(
      {.folder = options.checkpoint, .ranks = parallel::checkpoint_ranks(process)}, model.module,
      optimizer, loader);
  if (options.resume) checkpoint.load_latest();

  const std::chrono::microseconds pause(static_cast<std::int64_t>(number("STEP_US", 0)));
  for (auto& batch : training::progress(loader, options, checkpoint)) {
    const Tensor loss = nn::cross_entropy(model(batch.image), batch.label);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    std::this_thread::sleep_for(pause);
    if (batch.step() % 4 == 3 || batch.is_last_of_epoch()) checkpoint.save();
  }
  if (process.rank() == 0) print("finished at step ", loader.steps());
  return training::exit_status();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    parallel::Process process(argc, argv, {.timeout = number("TIMEOUT", 10)});
    return run(training::options(argc, argv), process);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_ranks: %s\n", e.what());
    return 1;
  }
}
