// One process a device, on one machine or many:
//   ./distributed                     (alone: one rank)
//   mpirun -np 4 ./distributed        (CPU devices: MPI; GPUs: NCCL, started over MPI)
//   --deterministic: the same bits for any number of processes
//   --checkpoint FOLDER: save after each epoch; a run that finds a checkpoint goes on from there
// docs/guides/distributed.md has srun, torchrun and Kubernetes.
#include <cstdio>
#include <string>
#include <string_view>

#include <braid/braid.hpp>

using namespace braid;

void train(int argc, char** argv) {
  // rank, number of ranks, this rank's device, a communicator; a world of one without a launcher
  parallel::Process process(argc, argv);
  bool deterministic = false;
  std::string folder;  // without one, nothing is saved
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--deterministic") deterministic = true;
    else if (argument == "--checkpoint" && i + 1 < argc) folder = argv[++i];
    else
      throw ArgumentError("expected --deterministic or --checkpoint FOLDER, got " + str(argument));
  }
  const int rows = 192;  // of all processes together
  data::DataLoader loader(data::SyntheticDigits(10'000),
                          {.batch_size = rows / process.size(),
                           .sampler = data::DistributedSampler(process.rank(), process.size(),
                                                               {.consecutive = deterministic})});

  manual_seed(1);
  parallel::DistributedDataParallel model(
      nn::Sequential{nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 10)}, process,
      {.virtual_replicas = deterministic ? 24 : 0});
  optim::SGD optimizer(parameters(model), {.lr = 0.1, .momentum = 0.9});
  // rank 0 writes, and all ranks load
  training::Checkpoint checkpoint({.folder = folder, .ranks = parallel::checkpoint_ranks(process)},
                                  model.module, optimizer, loader);
  checkpoint.load_latest();
  while (loader.epoch() < 2) {  // each loop over the loader is one epoch
    for (auto& [image, label] : loader) {
      optimizer.zero_grad();
      const Tensor x = image.flatten(1).to(process.device()), y = label.to(process.device());
      nn::cross_entropy(model(x), y).backward();  // buckets are reduced while backward runs
      optimizer.step();
    }
    checkpoint.save();
  }
  if (process.rank() == 0) save_safetensors("model.safetensors", state_dict(model.module));
}

int main(int argc, char** argv) {
  try {
    train(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "distributed: %s\n", e.what());
    return 1;  // ends the other ranks, too
  }
}
