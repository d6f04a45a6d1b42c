// Streams and events.
#include <thread>

#include "cuda_support.hpp"

using namespace braid;
using namespace braid::test;

TEST_CASE("streams: an event is done when what came before it is", "[cuda][streams]") {
  NEEDS_DEVICES(1);
  Stream& stream = current_stream(cuda_device(0));
  const std::unique_ptr<Event> event = backend(0).make_event();
  CHECK(event->done());  // never recorded
  CHECK_NOTHROW(event->synchronize());
  Tensor x = ones({1000}, {.device = cuda_device(0)});
  for (int i = 0; i < 10; ++i) x = x + x;
  stream.record(*event);
  event->synchronize();
  CHECK(event->done());
  stream.record(*event);  // again
  stream.synchronize();
  CHECK(event->done());
}

TEST_CASE("streams: a wait orders two streams of a device", "[cuda][streams]") {
  NEEDS_DEVICES(1);
  constexpr std::size_t kBytes = 1 << 20;
  const std::unique_ptr<Stream> a = backend(0).make_stream(), b = backend(0).make_stream();
  const std::unique_ptr<Event> written = backend(0).make_event(), read = backend(0).make_event();
  const Held x(0, kBytes, a.get()), y(0, kBytes, b.get());
  for (unsigned char round = 1; round < 6; ++round) {
    const std::vector<unsigned char> from(kBytes, round);
    if (round > 1) a->wait(*read);
    backend(0).copy({x.data(), cuda_device(0), from.data(), Device(), kBytes}, *a);
    a->record(*written);
    b->wait(*written);
    backend(0).copy({y.data(), cuda_device(0), x.data(), cuda_device(0), kBytes}, *b);
    b->record(*read);
    std::vector<unsigned char> seen(kBytes);
    backend(0).copy({seen.data(), Device(), y.data(), cuda_device(0), kBytes}, *b);
    CHECK(seen == from);
  }
  a->synchronize();
  b->synchronize();
}

TEST_CASE("streams: a wait orders two devices", "[cuda][streams]") {
  NEEDS_DEVICES(2);
  const std::unique_ptr<Event> event = backend(0).make_event();
  const Tensor x = full({1000}, 4, {.device = cuda_device(0)});
  current_stream(cuda_device(0)).record(*event);
  current_stream(cuda_device(1)).wait(*event);
  CHECK(x.to(cuda_device(1)).sum().item<double>() == 4000);
}

TEST_CASE("streams: events of the CPU and of CUDA in one program", "[cuda][streams]") {
  NEEDS_DEVICES(1);
  DeviceBackend& cpu = *device_context(Device()).backend;
  const std::unique_ptr<Event> of_cpu = cpu.make_event(), of_cuda = backend(0).make_event();
  const Tensor x = ones({100}, {.device = cuda_device(0)});
  current_stream(Device()).record(*of_cpu);
  CHECK_NOTHROW(current_stream(cuda_device(0)).wait(*of_cpu));
  current_stream(cuda_device(0)).record(*of_cuda);
  current_stream(Device()).wait(*of_cuda);  // the thread waits
  CHECK(of_cuda->done());
  CHECK_NOTHROW(current_stream(Device()).record(*of_cuda));
  CHECK_NOTHROW(current_stream(cuda_device(0)).record(*of_cpu));
  CHECK(of_cpu->done());
}

TEST_CASE("streams: each thread may work on each device", "[cuda][streams]") {
  NEEDS_DEVICES(2);
  std::vector<double> sums(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < sums.size(); ++t)
    threads.emplace_back([&sums, t] {
      Tensor x =
          full({1000}, static_cast<double>(t), {.device = cuda_device(static_cast<int>(t % 2))});
      for (int i = 0; i < 20; ++i) x = (x + 1).to(cuda_device(static_cast<int>(i % 2)));
      sums[t] = x.sum().item<double>();
    });
  for (std::thread& t : threads) t.join();
  for (std::size_t t = 0; t < sums.size(); ++t)
    CHECK(sums[t] == 1000.0 * (20.0 + static_cast<double>(t)));
}

TEST_CASE("streams: synchronize waits for all that was queued", "[cuda][streams]") {
  NEEDS_DEVICES(1);
  for (const Device d : devices(DeviceType::cuda)) CHECK_NOTHROW(synchronize(d));
}
