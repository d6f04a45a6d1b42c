// Pinned tensors, and copies from the host that overlap the work of a device.
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "cuda/runtime/staging.hpp"
#include "cuda_support.hpp"
#include "gate.hpp"

using namespace braid;
using namespace braid::test;

namespace {

const Device kHere(DeviceType::cuda, 0);

Stream& uploads() { return *backend(0).upload_stream(); }

/// True if the uploads that are queued so far end before the gate gives up.
bool arrives(const Gate& gate) {
  const std::unique_ptr<Event> event = make_event(kHere);
  uploads().record(*event);
  while (!event->done() && !gate.late()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return event->done() && !gate.late();
}

/// An uploaded tensor's first elements, computed behind all work of the device.
Tensor first_of(const Tensor& x) { return x.flatten().narrow(0, 0, 4) * 2; }

Tensor batch(int value, std::int64_t bytes) {
  return full({bytes}, value, {.dtype = DType::uint8});
}

void settle() {
  synchronize(kHere);
  uploads().synchronize();
}

}  // namespace

TEST_CASE("uploads: what is pinned", "[uploads]") {
  NEEDS_DEVICES(1);
  const Tensor x = randn({30, 7}), pinned = x.pin_memory();
  CHECK_FALSE(x.is_pinned());
  CHECK(pinned.is_pinned());
  CHECK(pinned.device() == Device());
  CHECK(equal(pinned, x));
  CHECK(pinned.pin_memory().is_set_to(pinned));
  CHECK(pinned[3].is_pinned());
  CHECK(equal(x.t().pin_memory(), x.t()));
  CHECK_FALSE(pinned.clone().is_pinned());
  CHECK_FALSE(pinned.to(kHere).is_pinned());
  CHECK_FALSE(from_blob(pinned.data<float>(), {7}, DType::float32).is_pinned());
  CHECK(zeros({0, 3}).pin_memory().is_pinned());
  const Tensor w = ones({3}, {.requires_grad = true, .pinned_memory = true});
  CHECK(w.is_pinned());
  (w.pin_memory() * 3).sum().backward();
  CHECK(w.grad().to_vector<float>() == std::vector<float>(3, 3));
  const Tensor v = ones({3}, {.requires_grad = true});
  (v.pin_memory() * 5).sum().backward();
  CHECK(v.grad().to_vector<float>() == std::vector<float>(3, 5));
  CHECK_THROWS_TEXT(DeviceError, "pin_memory: expected a tensor of a CPU device, got one on cuda:0",
                    x.to(kHere).pin_memory());
  CHECK_THROWS_TEXT(DeviceError,
                    "pinned_memory: expected a tensor of a CPU device, got one on cuda:0",
                    zeros({3}, {.device = kHere, .pinned_memory = true}));
}

TEST_CASE("uploads: every factory makes pinned tensors", "[uploads]") {
  NEEDS_DEVICES(1);
  using Make = std::function<Tensor(const FactoryOptions&)>;
  const Make all[] = {
      [](const FactoryOptions& o) { return tensor({1, 2, 3}, o); },
      [](const FactoryOptions& o) { return tensor(std::vector<double>{1, 2}, o); },
      [](const FactoryOptions& o) { return zeros({3}, o); },
      [](const FactoryOptions& o) { return full({3, 2}, 7, o); },
      [](const FactoryOptions& o) { return arange(5, o); },
      [](const FactoryOptions& o) { return arange(0.5, 5, 1, o); },
      [](const FactoryOptions& o) { return linspace(0, 1, 9, o); },
      [](const FactoryOptions& o) { return logspace(0, 1, 9, 10, o); },
      [](const FactoryOptions& o) { return eye(3, o); },
      [](const FactoryOptions& o) { return ones_like(zeros({2}), o); },
      [](const FactoryOptions& o) { return tril_indices(3, 3, 0, o); },
      [](const FactoryOptions& o) { return randn({40}, o); },
      [](const FactoryOptions& o) { return normal(1, 2, {40}, o); },
      [](const FactoryOptions& o) { return uniform({40}, 1, 2, o); },
      [](const FactoryOptions& o) { return randint(0, 9, {40}, o); },
      [](FactoryOptions o) { return o.dtype = DType::int32, randint(0, 9, {40}, o); },
      [](const FactoryOptions& o) { return randperm(40, o); },
  };
  int i = 0;
  for (const Make& make : all) {
    INFO("factory " << i++);
    manual_seed(4);
    const Tensor plain = make({});
    manual_seed(4);
    const Tensor pinned = make({.pinned_memory = true});
    CHECK_FALSE(plain.is_pinned());
    CHECK(pinned.is_pinned());
    CHECK(equal(pinned, plain));
  }
  CHECK(empty({5}, {.pinned_memory = true}).is_pinned());
  CHECK(zeros({2}, TensorOptions().pinned_memory(true)).is_pinned());
}

TEST_CASE("uploads: pinned memory is used again when the copies from it are done", "[uploads]") {
  NEEDS_DEVICES(1);
  constexpr std::int64_t kBytes = 70000;  // a size that no other test pins
  Tensor there;
  const void* first = nullptr;
  settle();
  {
    const Gate gate(uploads());
    {
      const Tensor x = batch(3, kBytes).pin_memory();
      first = x.id()->data();
      there = x.to(kHere, true);
    }
    const Tensor other = batch(4, kBytes).pin_memory();
    CHECK(other.id()->data() != first);
    CHECK_FALSE(gate.late());
  }
  settle();
  CHECK(equal(there.to(Device()), batch(3, kBytes)));
  const Tensor again = batch(5, kBytes).pin_memory(), more = batch(6, kBytes).pin_memory();
  CHECK((again.id()->data() == first || more.id()->data() == first));
}

TEST_CASE("uploads: forms of a copy that does not block", "[uploads]") {
  NEEDS_DEVICES(1);
  const Tensor x = randn({300, 1000}).pin_memory();
  const Tensor copies[] = {x.to(kHere, true),
                           x.to(DeviceType::cuda, true),
                           x.to(kHere, DType::float32, true, false),
                           x.to(TensorOptions(kHere), true),
                           x.to(zeros({1}, {.device = kHere}), true),
                           zeros({300, 1000}, {.device = kHere}).copy_(x, true),
                           x.narrow(0, 1, 299).to(kHere, true),
                           x.t().to(kHere, true),
                           x.to(kHere, DType::float64, true, false)};
  settle();
  int i = 0;
  for (const Tensor& y : copies) {
    INFO("form " << i++);
    CHECK(y.device() == kHere);
    const Tensor back = y.to(Device(), DType::float32);
    CHECK(equal(back, i == 7 ? x.narrow(0, 1, 299) : i == 8 ? x.t() : x));
  }
}

TEST_CASE("uploads: a copy from the host overlaps the work of the device", "[uploads]") {
  NEEDS_DEVICES(1);
  constexpr std::int64_t kBytes = 5 << 20;  // more than the ring has at the start
  for (const bool pinned : {false, true}) {
    INFO((pinned ? "pinned" : "pageable"));
    const Tensor x = pinned ? batch(3, kBytes).pin_memory() : batch(3, kBytes);
    const Tensor target = batch(1, kBytes).to(kHere);
    settle();
    Tensor y, before, after, z;
    {
      const Gate gate(current_stream(kHere));
      before = first_of(target);
      y = x.to(kHere, true);
      CHECK(arrives(gate));
      z = first_of(y);
      target.copy_(x, true);  // behind what reads the target
      after = first_of(target);
      CHECK_FALSE(gate.late());
    }
    CHECK(z.to_vector<std::uint8_t>() == std::vector<std::uint8_t>(4, 6));
    CHECK(before.to_vector<std::uint8_t>() == std::vector<std::uint8_t>(4, 2));
    CHECK(after.to_vector<std::uint8_t>() == std::vector<std::uint8_t>(4, 6));
    CHECK(equal(y.to(Device()), x));
  }
}

TEST_CASE("uploads: the next batch arrives while the device works on this one", "[uploads]") {
  NEEDS_DEVICES(1);
  for (const std::int64_t bytes : {std::int64_t{1000}, std::int64_t{3} << 20}) {
    INFO(bytes << " bytes");
    std::vector<Tensor> hosts, results;
    for (int i = 0; i < 12; ++i) hosts.push_back(batch(i, bytes));
    settle();
    empty_cache(kHere);
    const std::size_t before = memory_stats(kHere).in_use + memory_stats(kHere).cached;
    std::size_t most = 0;
    {
      const Gate gate(current_stream(kHere));
      for (int i = 0; i < 12; ++i) {
        const Tensor x = hosts[static_cast<std::size_t>(i)].to(kHere);
        results.push_back(first_of(x));  // x goes before this runs
        if (i < 2) CHECK(arrives(gate));
        const MemoryStats now = memory_stats(kHere);
        most = std::max(most, now.in_use + now.cached - before);
      }
      CHECK_FALSE(gate.late());
    }
    for (int i = 0; i < 12; ++i)
      CHECK(results[static_cast<std::size_t>(i)].to_vector<std::uint8_t>() ==
            std::vector<std::uint8_t>(4, static_cast<std::uint8_t>(2 * i)));
    // The blocks that wait for the device are few, however far the host is ahead: one segment of
    // 20 MiB has six blocks of 3 MiB.
    CHECK(most <= std::size_t{24} << 20);
    settle();
    empty_cache(kHere);
    CHECK(memory_stats(kHere).cached <= std::size_t{24} << 20);
  }
}

TEST_CASE("uploads: memory that waits for the device is there for others", "[uploads]") {
  NEEDS_DEVICES(1);
  constexpr std::int64_t kBytes = 12 << 20;
  settle();
  empty_cache(kHere);
  const std::size_t used = memory_stats(kHere).in_use;
  set_memory_capacity(kHere, used + (std::size_t{20} << 20));
  Tensor result, large, again;
  {
    const Gate gate(current_stream(kHere));
    {
      const Tensor x = batch(3, kBytes).to(kHere);
      result = first_of(x);
    }
    again = batch(4, kBytes).to(kHere);  // the same memory
    CHECK_FALSE(gate.late());
  }
  CHECK(result.to_vector<std::uint8_t>() == std::vector<std::uint8_t>(4, 6));
  CHECK(equal(again.to(Device()), batch(4, kBytes)));
  again = Tensor();
  large = full({kBytes}, 5, {.device = kHere, .dtype = DType::uint8});
  CHECK(first_of(large).to_vector<std::uint8_t>() == std::vector<std::uint8_t>(4, 10));
  set_memory_capacity(kHere, 0);
}

TEST_CASE("uploads: the staging memory grows up to its limit", "[uploads]") {
  NEEDS_DEVICES(1);
  constexpr std::size_t kPiece = cuda::PinnedRing::kPieceBytes, kMost = 32;
  std::vector<unsigned char> from(kPiece * 44);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i >> 6);
  const Held block(0, from.size());
  settle();
  const std::shared_ptr<Stream> made = make_stream(kHere);
  auto& stream = static_cast<cuda::CudaStream&>(*made);
  cuda::PinnedRing ring(stream.gpu(), kHere, kMost);
  const auto upload = [&](std::size_t first, std::size_t bytes) {
    ring.to_device(static_cast<char*>(block.data()) + first, &from[first], bytes, stream);
  };
  {
    Gate gate(stream);
    upload(0, kPiece * 20);  // more than the ring has at the start
    for (std::size_t i = 0; i < 100; ++i) upload(kPiece * 20 + i * 128, 128);
    CHECK_FALSE(gate.late());
    std::atomic<bool> opened{false};
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      opened = true;
      gate.open();
    });
    upload(kPiece * 20 + 12800, kPiece * 24 - 12800);
    CHECK(opened);  // the ring has no more pieces, so the call waited
    opener.join();
    CHECK_FALSE(gate.late());
  }
  stream.synchronize();
  std::vector<unsigned char> seen(from.size());
  copy_out(0, seen.data(), block.data(), seen.size());
  CHECK(seen == from);
}

TEST_CASE("uploads: batches of a loader in pinned memory", "[uploads]") {
  NEEDS_DEVICES(1);
  const Tensor rows = randn({40, 3});
  for (const int workers : {0, 2}) {
    data::DataLoader loader(data::TensorDataset(std::pair(rows, arange(40))),
                            {.batch_size = 16, .workers = workers, .pin_memory = true});
    std::int64_t first = 0;
    for (auto& [x, index] : loader) {
      CHECK(x.is_pinned());
      CHECK(index.is_pinned());
      CHECK(equal(x.to(kHere, true).to(Device()), rows.narrow(0, first, x.size(0))));
      first += x.size(0);
    }
    CHECK(first == 40);
  }
}
