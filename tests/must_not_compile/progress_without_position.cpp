// expect: progress with a checkpoint needs a loader whose position can be saved
#include <braid/braid.hpp>
using namespace braid;
struct Batches {
  std::int64_t batches() const { return 1; }
  data::Labelled* begin() { return &batch; }
  data::Labelled* end() { return &batch + 1; }
  data::Labelled batch;
};
int main() {
  nn::Linear model(2, 2);
  training::Checkpoint checkpoint("run", model);
  Batches batches;
  for (auto& batch : training::progress(batches, {}, checkpoint)) print(batch.image);
}
