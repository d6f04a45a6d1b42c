// Checkpoints over a communicator, with ranks as threads. tests/nn/test_checkpoint_ranks.cpp tests
// each step of a save.
#include <braid/parallel/checkpoint.hpp>

#include "processes/collectives.hpp"
#include "ranks.hpp"
#include "support/temporary.hpp"

namespace braid::test {
namespace {

using parallel::ProcessCommunicator;

/// Calls f(communicator, checkpoint, model) on each rank; the weights are all `value`.
template <class F>
std::vector<std::string> with_checkpoint(int ranks, const TemporaryFolder& folder, float value,
                                         const F& f) {
  std::vector<Device> devices;
  for (int i = 0; i < ranks; ++i) devices.push_back(device(i % device_count()));
  auto all = parallel::detail::make_thread_communicators(devices);
  std::vector<std::string> texts(all.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i)
    threads.emplace_back([&, i] {
      nn::Linear model(3, 2);
      to(model, all[i]->device());
      {
        const NoGrad guard;
        model.weight.fill_(value);
      }
      texts[i] = text_of([&] {
        training::Checkpoint checkpoint(
            {.folder = folder.path(), .ranks = parallel::checkpoint_ranks(all[i])}, model);
        f(*all[i], checkpoint, model);
      });
      all[i].reset();  // the others hear that it has left
    });
  for (std::thread& t : threads) t.join();
  return texts;
}

}  // namespace

TEST_CASE("process checkpoint: saved by three ranks, loaded by one to four",
          "[process][checkpoint]") {
  const TemporaryFolder folder;
  const auto saved = with_checkpoint(3, folder, 2, [](auto& c, auto& checkpoint, auto& model) {
    if (c.rank() != 0) {  // only rank 0's are saved
      const NoGrad guard;
      model.weight.fill_(5);
    }
    checkpoint.save();
    expect(checkpoint.last() == 1, "the number on all ranks");
  });
  CHECK(saved == std::vector<std::string>(3));
  for (const int ranks : {1, 2, 4}) {
    const auto loaded = with_checkpoint(ranks, folder, 9, [](auto&, auto& checkpoint, auto& model) {
      expect(checkpoint.load_latest(), "a checkpoint");
      same(model.weight.to(Device()), full({2, 3}, 2.0));
    });
    CHECK(loaded == std::vector<std::string>(static_cast<std::size_t>(ranks)));
  }
}

TEST_CASE("process checkpoint: a rank that leaves before it confirms leaves nothing behind",
          "[process][checkpoint][errors][once]") {
  const TemporaryFolder folder;
  const auto texts = with_checkpoint(3, folder, 2, [](auto& c, auto& checkpoint, auto&) {
    if (c.rank() == 1) throw Error("rank 1 fails");
    checkpoint.save();
  });
  CHECK(texts[0].find("rank 1") != std::string::npos);
  CHECK(texts[1] == "rank 1 fails");
  CHECK(texts[2] == texts[0]);
  CHECK(folder.names().empty());
}

}  // namespace braid::test
