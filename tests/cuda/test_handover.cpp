// Tests every place where one stream must wait for another before it uses memory. A host function
// that sleeps delays the first stream, so a missing wait shows as old values. The values of every
// round differ.
#include <utility>
#include <vector>

#include "cuda/runtime/staging.hpp"
#include "cuda_support.hpp"
#include "gate.hpp"
#include "support/views.hpp"

using namespace braid;
using namespace braid::test;

namespace {

constexpr int kRounds = 4;
constexpr std::int64_t kCount = 20'000;

Tensor numbers(double value, int device, const Shape& shape = {kCount}) {
  return filled(value, device, shape);
}
Stream& stream_of(int device) { return current_stream(cuda_device(device)); }
void delay_all() {
  for (const Device d : devices(DeviceType::cuda)) delay(current_stream(d));
}

/// Copies on `side`, after the work queued on the current stream and with a delay.
void copy_late(const std::shared_ptr<Stream>& side, const Tensor& to, const Tensor& from) {
  side->wait_for(current_stream(to.device()));
  delay(*side);
  const StreamGuard guard(side);
  to.copy_(from);
}

/// Returns the number of elements that are not `value`.
std::int64_t wrong(const Tensor& t, double value) {
  std::int64_t count = 0;
  for (const float v : t.to_vector<float>()) count += v != static_cast<float>(value) ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("hand-over: a stream waits for another, and for an event", "[handover]") {
  NEEDS_DEVICES(1);
  const std::shared_ptr<Stream> side = make_stream(cuda_device(0));
  const std::unique_ptr<Event> ready = make_event(cuda_device(0));
  for (int round = 0; round < kRounds; ++round) {
    INFO("round " << round);
    // No allocation happens in between: it could make one stream wait for the other.
    const Tensor x = numbers(round, 0), y = numbers(-1, 0), z = numbers(-1, 0),
                 first = numbers(-1, 0), second = numbers(-1, 0);
    copy_late(side, y, x);
    side->record(*ready);
    stream_of(0).wait(*ready);
    first.copy_(y);
    CHECK(wrong(first, round) == 0);
    copy_late(side, z, y);
    stream_of(0).wait_for(*side);
    second.copy_(z);
    CHECK(wrong(second, round) == 0);
  }
}

TEST_CASE("hand-over: memory that a late stream still reads is nobody else's", "[handover]") {
  NEEDS_DEVICES(1);
  const std::shared_ptr<Stream> side = make_stream(cuda_device(0));
  for (int round = 0; round < kRounds; ++round) {
    INFO("round " << round);
    Tensor x = numbers(round, 0);
    const Tensor y = numbers(-1, 0);
    copy_late(side, y, x);
    record_stream(x, *side);
    record_stream(x, *side);  // recording twice has the same effect as once
    x = {};
    x = numbers(-100, 0);  // allocates memory of that size
    stream_of(0).wait_for(*side);
    CHECK(wrong(y, round) == 0);
    CHECK(wrong(x, -100) == 0);
  }
}

TEST_CASE("hand-over: memory freed on a late stream is used by another after it", "[handover]") {
  NEEDS_DEVICES(1);
  const std::shared_ptr<Stream> side = make_stream(cuda_device(0));
  DeviceBackend& device = backend(0);
  const Shape large{300'000};
  empty_cache(cuda_device(0));
  std::vector<Tensor> kept;  // keeps memory of that size, so that the default stream has none free
  for (int round = 0; round < kRounds; ++round) {
    INFO("round " << round);
    Tensor result;
    {
      const StreamGuard guard(side);
      const Tensor x = numbers(round, 0, large);
      delay(*side);
      result = x + 1;  // reads x late; x is freed on `side` immediately
    }
    const MemoryStats now = memory_stats(cuda_device(0));
    device.set_memory_capacity(now.in_use + now.cached);  // allows no new block, so x's is reused
    kept.push_back(numbers(-100, 0, large));
    device.set_memory_capacity(0);
    stream_of(0).wait_for(*side);
    CHECK(wrong(result, round + 1) == 0);
    CHECK(wrong(kept.back(), -100) == 0);
    record_stream(result, stream_of(0));
  }
}

TEST_CASE("hand-over: pinned pieces are filled again only behind their copies", "[handover]") {
  NEEDS_DEVICES(1);
  constexpr auto kRing = static_cast<std::int64_t>(cuda::PinnedRing::kPieceBytes *
                                                   cuda::PinnedRing::kPieces / sizeof(float));
  const std::int64_t count = 2 * kRing + 77;
  std::vector<Tensor> there;
  // the contents of all pieces differ
  const auto piece_of = [&](double round) {
    return arange(count, {.dtype = DType::float32}) + round;
  };
  for (int round = 0; round < 3; ++round) {
    Tensor host = piece_of(round);
    delay(stream_of(0));
    there.push_back(host.to(cuda_device(0)));
    host.fill_(-1);  // the copy has already read it
  }
  for (int round = 0; round < 3; ++round)
    CHECK(equal(there[static_cast<std::size_t>(round)].to(Device()), piece_of(round)));
  delay(stream_of(0));
  const Tensor some = there[0].narrow(0, 0, kCount);
  some.fill_(7);
  CHECK(wrong(some, 7) == 0);  // copies to the host after the queued work
}

TEST_CASE("hand-over: a copy between devices is after and before the work of both", "[handover]") {
  NEEDS_DEVICES(2);
  for (const auto& [late_from, late_to] : {std::pair{true, false}, {false, true}, {true, true}})
    for (int round = 0; round < kRounds; ++round) {
      INFO("round " << round << (late_from ? ", source late" : "")
                    << (late_to ? ", target late" : ""));
      const Tensor x = numbers(-1, 0), y = numbers(-2, 1);
      if (late_from) delay(stream_of(0));
      x.fill_(round);
      if (late_to) delay(stream_of(1));
      y.copy_(x);
      x.fill_(-3);  // after the copy has read it
      const Tensor back = (y * 2).to(cuda_device(0));
      y.fill_(-4);
      CHECK(wrong(back, 2 * round) == 0);
      CHECK(wrong(x, -3) == 0);
      CHECK(wrong(y, -4) == 0);
    }
}

TEST_CASE("hand-over: the source of a copy between devices may go at once", "[handover]") {
  NEEDS_DEVICES(2);
  std::vector<Tensor> kept;
  for (int round = 0; round < kRounds; ++round) {
    Tensor x = numbers(round, 0);
    delay(stream_of(1));  // the target is delayed, and so is the copy
    kept.push_back(x.to(cuda_device(1)));
    x = {};
    x = numbers(-5, 0);
  }
  for (int round = 0; round < kRounds; ++round)
    CHECK(wrong(kept[static_cast<std::size_t>(round)], round) == 0);
}

TEST_CASE("hand-over: scatter and gather, with every device late", "[handover]") {
  NEEDS_DEVICES(2);
  const std::vector<Device> group = devices(DeviceType::cuda);
  const std::int64_t rows = 8 * static_cast<std::int64_t>(group.size());
  for (const bool from_host : {false, true})
    for (int round = 0; round < kRounds; ++round) {
      INFO("round " << round << (from_host ? ", from the host" : ", from the first device"));
      const Tensor x = from_host ? full({rows, 500}, -1, {.dtype = DType::float32})
                                 : numbers(-1, 0, {rows, 500});
      delay_all();
      x.fill_(round);
      std::vector<Tensor> parts = parallel::scatter(x, group);
      x.fill_(-6);
      REQUIRE(parts.size() == group.size());
      // from a device, part 0 is a view of x
      for (std::size_t i = from_host ? 0 : 1; i < parts.size(); ++i)
        CHECK(wrong(parts[i] + 1, round + 1) == 0);
      for (Tensor& part : parts) part = full({8, 500}, -7.0, {.device = part.device()});
      delay_all();
      for (std::size_t i = 0; i < parts.size(); ++i) parts[i].fill_(static_cast<double>(i) + round);
      const Tensor all = parallel::gather(parts, cuda_device(0));
      for (Tensor& part : parts) part.fill_(-8);
      for (std::size_t i = 0; i < parts.size(); ++i)
        CHECK(wrong(all.narrow(0, static_cast<std::int64_t>(i) * 8, 8),
                    static_cast<double>(i) + round) == 0);
    }
}

TEST_CASE("hand-over: broadcast and reduce, with every device late", "[handover]") {
  NEEDS_DEVICES(2);
  const std::vector<Device> group = devices(DeviceType::cuda);
  const std::unique_ptr<parallel::Communicator> communicator =
      parallel::make_local_communicator(group);
  for (int round = 0; round < kRounds; ++round) {
    INFO("round " << round);
    std::vector<Tensor> parts;
    for (std::size_t i = 0; i < group.size(); ++i)
      parts.push_back(numbers(-1, static_cast<int>(i)));
    const std::vector<parallel::BufferView> views = views_of(parts);
    delay_all();
    parts[0].fill_(round);
    communicator->broadcast(views);
    parts[0].fill_(-9);
    for (std::size_t i = 1; i < parts.size(); ++i) CHECK(wrong(parts[i] + 1, round + 1) == 0);
    delay_all();
    double expected = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double value = static_cast<double>(i + 1) * (round + 1);
      parts[i].fill_(value);
      expected += value;
    }
    const Tensor total = numbers(-1, 0);
    communicator->reduce(views, views_of({total}));
    for (const Tensor& part : parts) part.fill_(-10);
    CHECK(wrong(total, expected) == 0);
  }
}

TEST_CASE("hand-over: steps of DataParallel, late devices give the same bits", "[handover]") {
  NEEDS_DEVICES(2);
  const auto train = [](bool late) {
    parallel::DataParallel<nn::Linear> model{nn::Linear(6, 3)};
    to(model, cuda_device(0));
    for (const Tensor& p : parameters(model)) {
      const NoGrad guard;
      p.fill_(0.125);
    }
    optim::SGD optimizer(parameters(model), {.lr = 0.1});
    const Tensor x = (arange(24 * 6, {.dtype = DType::float32}) / 100.0).reshape({24, 6}),
                 y = full({24, 3}, 0.5, {.device = cuda_device(0)});
    std::vector<float> losses;
    for (int step = 0; step < 3; ++step) {
      if (late) delay_all();
      optimizer.zero_grad();
      const Tensor loss = nn::mse_loss(model(x), y);
      if (late) delay_all();
      loss.backward();
      if (late) delay_all();
      optimizer.step();
      losses.push_back(loss.item<float>());
    }
    return losses;
  };
  const std::vector<float> on_time = train(false);
  CHECK(on_time.back() < on_time.front());
  CHECK(train(true) == on_time);
}
