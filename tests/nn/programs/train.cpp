// A training program as users write it. kill_and_resume.sh kills and resumes it. Returns 130 or 143
// if a signal asked it to stop; it has then saved a checkpoint.
#include <chrono>
#include <cstdio>
#include <thread>

#include "nn/train_run.hpp"

using namespace braid;

namespace {

int run(const training::Options& options) {
  manual_seed(options.seed);
  data::DataLoader loader(test::Clusters{200},
                          {.batch_size = options.batch, .shuffle = true, .workers = 1});
  test::SmallNet model;
  optim::AdamW optimizer(parameters(model), {.lr = options.lr});
  training::Checkpoint checkpoint(options.checkpoint, model, optimizer, loader);
  if (options.resume) checkpoint.load_latest();

  const char* pause = std::getenv("STEP_US");
  const std::chrono::microseconds extra(pause == nullptr ? 0 : std::atoi(pause));
  for (auto& batch : training::progress(loader, options, checkpoint)) {
    const Tensor loss =
        nn::cross_entropy(model(batch.image + 0.1 * randn(batch.image.shape())), batch.label);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    batch.report("loss", loss);
    std::this_thread::sleep_for(extra);
    if (batch.is_last_of_epoch()) checkpoint.save();
  }
  print(training::stop_requested() != 0 ? "stopped" : "finished", " at step ", loader.steps(),
        ", accuracy ", training::accuracy(model, loader.dataset()));
  return training::exit_status();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(training::options(argc, argv));
  } catch (const training::HelpRequested& help) {
    std::fputs(help.what(), stdout);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train: %s\n", e.what());
    return 1;
  }
}
