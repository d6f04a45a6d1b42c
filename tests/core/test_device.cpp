#include <barrier>
#include <latch>
#include <optional>
#include <thread>

#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/linked_library.hpp>
#include <braid/core/internal/worker.hpp>

#include "shorthand.hpp"
#include "support/child.hpp"

namespace braid::test {

TEST_CASE("device: a type and an index", "[device]") {
  CHECK(Device() == Device(DeviceType::cpu, 0));
  CHECK(Device("cpu") == Device(DeviceType::cpu, 0));
  CHECK(Device("cpu:0") == Device());
  CHECK(Device("cpu:13") == Device(DeviceType::cpu, 13));
  CHECK(Device("cuda") == Device(DeviceType::cuda, 0));
  CHECK(Device(std::string("cuda:2")) == Device(DeviceType::cuda, 2));
  CHECK(Device("cpu:1") != Device("cpu:0"));
  CHECK(Device("cpu:1") != Device("cuda:1"));
  CHECK(Device("cpu:0") < Device("cpu:1"));
  CHECK(str(Device("cpu")) == "cpu:0");
  CHECK(str(Device("cuda:3")) == "cuda:3");
  CHECK(sizeof(Device) <= 4);
  // An index that does not fit must not become another device.
  CHECK(Device(DeviceType::cpu, 65536) != Device("cpu:0"));
  CHECK(Device(DeviceType::cpu, -65536) != Device("cpu:0"));
  CHECK_THROWS_TEXT(DeviceError, "device: expected one of cpu:0",
                    zeros({1}, {.device = Device(DeviceType::cpu, 65536)}));
  CHECK_THROWS_TEXT(DeviceError, "device: expected one of cpu:0",
                    zeros({1}, {.device = Device(DeviceType::cpu, 65537)}));
}

TEST_CASE("device: any other text is refused", "[device][errors]") {
  const std::vector<const char*> texts{"",
                                       ":",
                                       "gpu",
                                       "cpu:",
                                       "cpu:-1",
                                       "cpu: 1",
                                       "cpu:1 ",
                                       " cpu",
                                       "CPU",
                                       "cpu:x",
                                       "cpu:1x",
                                       "cpu:+1",
                                       "cpu:0x1",
                                       "cpu:01",
                                       "cpu:99999999999999999999",
                                       "cpu:2147483648",
                                       "cpu:65536",
                                       "cpu:4294967296",
                                       "cuda:-0",
                                       "cpu::0",
                                       "tpu:0"};
  for (const char* text : texts) {
    INFO("'" << text << "'");
    CHECK_THROWS_TEXT(DeviceError, "expected *cpu*got *", Device(text));
    CHECK_THROWS_TEXT(DeviceError, text, Device(text));
  }
}

TEST_CASE("device: a device that does not exist is refused with those that do",
          "[device][errors]") {
  REQUIRE(device_count(DeviceType::cpu) >= 2);
  const Device none("cpu:60");
  using Calls = std::vector<std::function<void()>>;
  for (const std::function<void()>& call :
       Calls{[&] { (void)device_context(none); }, [&] { (void)zeros({2}, {.device = none}); },
             [&] { (void)zeros({2}).to(none); }, [&] { (void)zeros({0}).to(none); },
             [&] { synchronize(none); }, [&] { (void)memory_stats(none); },
             [&] { set_memory_capacity(none, 1); }, [&] { empty_cache(none); },
             [&] { (void)current_stream(none); }})
    CHECK(thrown<DeviceError>("device: expected one of cpu:0, cpu:1*got cpu:60", call) == "");
  if (device_count(DeviceType::cuda) == 0)
    CHECK_THROWS_TEXT(DeviceError, "got cuda:0", zeros({2}, {.device = Device("cuda")}));
  CHECK_THROWS_TEXT(DeviceError, "got cpu:-1", device_context(Device(DeviceType::cpu, -1)));
}

TEST_CASE("device: lists and counts", "[device]") {
  const std::vector<Device> cpus = devices(DeviceType::cpu);
  REQUIRE(static_cast<int>(cpus.size()) == device_count(DeviceType::cpu));
  for (std::size_t i = 0; i < cpus.size(); ++i)
    CHECK(cpus[i] == Device(DeviceType::cpu, static_cast<int>(i)));
  CHECK(devices() == devices(best_device().type()));
  CHECK(device_count() == static_cast<int>(devices().size()));
  for (const Device d : test_devices()) CHECK_NOTHROW(synchronize(d));
}

TEST_CASE("device: factories create on the default device", "[device]") {
  const Device first("cpu:0"), second("cpu:1");
  CHECK(get_default_device() == first);
  {
    const DefaultDeviceGuard outer(second);
    CHECK(get_default_device() == second);
    const std::vector<std::function<Tensor()>> factories{
        [] { return zeros({2}); },
        [] { return ones({2}); },
        [] { return empty({2}); },
        [] { return full({2}, 7); },
        [] { return tensor({1.0, 2.0}); },
        [] { return tensor({1, 2}); },
        [] { return tensor(std::vector<float>{1, 2}); },
        [] { return arange(3); },
        [] { return arange(0, 1, 0.25); },
        [] { return linspace(0, 1, 3); },
        [] { return eye(2); },
        [] { return rand({2}); },
        [] { return randn({2}); },
        [] { return uniform({2}, 0, 1); },
        [] { return randint(0, 9, {2}, {.dtype = DType::int32}); },
        [] { return randperm(5); }};
    for (std::size_t i = 0; i < factories.size(); ++i) {
      INFO("factory " << i);
      CHECK(factories[i]().device() == second);
    }
    // A device that is given counts, also that of a tensor.
    CHECK(zeros({2}, {.device = first}).device() == first);
    const Tensor there = ones({2}, {.device = first});
    CHECK(zeros_like(there).device() == first);
    float memory[2] = {1, 2};
    CHECK(from_blob(memory, {2}).device() == first);
    CHECK(collate(std::vector<std::int64_t>{1, 2}).device() == first);
    {
      const DefaultDeviceGuard inner(first);
      CHECK(zeros({2}).device() == first);
    }
    CHECK(zeros({2}).device() == second);
  }
  CHECK(zeros({2}).device() == first);
  set_default_device(second);
  const Tensor t = zeros({2});
  Device seen = first;
  std::thread([&] { seen = zeros({2}).device(); }).join();
  set_default_device(first);
  CHECK(t.device() == second);
  CHECK(seen == second);
}

TEST_CASE("device: a guard of the default device is its thread's", "[device]") {
  const Device first("cpu:0"), second("cpu:1");
  // The two guards overlap: this thread's is made first and destroyed first.
  std::barrier step(2);
  Device before = second, during = first, set = first, after = first;
  std::thread other([&] {
    step.arrive_and_wait();  // 1: the guard of this thread exists
    before = get_default_device();
    std::optional<DefaultDeviceGuard> guard(second);
    step.arrive_and_wait();  // 2: both exist
    during = zeros({2}).device();
    step.arrive_and_wait();  // 3: only the other thread's exists
    set = zeros({2}).device();
    guard.reset();
    after = get_default_device();
  });
  std::optional<DefaultDeviceGuard> guard(second);
  step.arrive_and_wait();
  step.arrive_and_wait();
  guard.reset();
  CHECK(get_default_device() == first);
  step.arrive_and_wait();
  other.join();
  CHECK(get_default_device() == first);
  CHECK(before == first);
  CHECK(during == second);
  CHECK(set == second);
  CHECK(after == first);
  // Work that is divided over devices continues with the guard of the thread that calls it.
  const DefaultDeviceGuard outer(second);
  std::vector<Device> seen(2);
  run_on_devices(std::vector{first, second}, [&](std::size_t i) {
    seen[i] = zeros({2}).device();
    const DefaultDeviceGuard inner(first);
  });
  CHECK(seen == std::vector{second, second});
  set_default_device(first);
  CHECK(get_default_device() == second);
}

TEST_CASE("device: a default device that does not exist is refused", "[device][errors]") {
  for (const auto& call : std::vector<std::function<void()>>{
           [] { set_default_device("cpu:60"); }, [] { const DefaultDeviceGuard guard("cpu:60"); }})
    CHECK(thrown<DeviceError>("device: expected one of cpu:0, cpu:1*got cpu:60", call) == "");
  CHECK(get_default_device() == Device("cpu:0"));
}

TEST_CASE("device: the count cannot change after use", "[device][errors]") {
  const int before = device_count(DeviceType::cpu);
  CHECK_THROWS_TEXT(DeviceError, "set_cpu_device_count: expected *before *use*got ",
                    set_cpu_device_count(before + 1));
  for (const int n : {0, 65, -3})
    CHECK_THROWS_TEXT(DeviceError, str("set_cpu_device_count: expected *1*64*got ", n),
                      set_cpu_device_count(n));
  CHECK(device_count(DeviceType::cpu) == before);
}

TEST_CASE("device: threads are set between 1 and 256", "[device][errors]") {
  const KeepThreads keep;
  const int before = num_threads();
  CHECK(before >= 1);
  for (const int n : {1, 3, 256, before}) {
    set_num_threads(n);
    CHECK(num_threads() == n);
  }
  for (const int n : {0, 257, -1})
    CHECK_THROWS_TEXT(ArgumentError, str("set_num_threads: expected *1*256*got ", n),
                      set_num_threads(n));
  CHECK(num_threads() == before);
}

// ---- state of a whole process

TEST_CASE("child: one CPU device by default", "[.child][default]") {
  CHECK(device_count(DeviceType::cpu) == 1);
  CHECK_THROWS_TEXT(DeviceError, "expected *cpu:0*got cpu:1",
                    zeros({1}, {.device = Device("cpu:1")}));
}
TEST_CASE("child: three by the environment", "[.child][three]") {
  CHECK(device_count(DeviceType::cpu) == 3);
  CHECK(zeros({1}, {.device = Device("cpu:2")}).device() == Device("cpu:2"));
}
TEST_CASE("child: the program overrides the environment, any number of times before use",
          "[.child][program]") {
  set_cpu_device_count(64);
  CHECK_THROWS_TEXT(DeviceError, "got 65", set_cpu_device_count(65));
  set_cpu_device_count(5);
  CHECK(device_count(DeviceType::cpu) == 5);
  CHECK_THROWS_TEXT(DeviceError, "before", set_cpu_device_count(4));
  CHECK(device_count(DeviceType::cpu) == 5);
}
TEST_CASE("child: a wrong number in the environment is an error", "[.child][wrong]") {
  CHECK_THROWS_TEXT(DeviceError, "BRAID_CPU_DEVICES: expected *1*64*got ",
                    device_count(DeviceType::cpu));
}
TEST_CASE("child: threads by the environment", "[.child][threads]") { CHECK(num_threads() == 3); }
TEST_CASE("child: a wrong number of threads is an error at the first use of a device",
          "[.child][wrong-threads]") {
  CHECK_THROWS_TEXT(DeviceError, "BRAID_THREADS: expected a number from 1 to 256, got '",
                    zeros({1}));
}
TEST_CASE("child: the best device by the environment", "[.child][best]") {
  CHECK(best_device() == Device("cpu:1"));
}
TEST_CASE("child: a wrong best device is an error", "[.child][worst]") {
  CHECK_THROWS_TEXT(DeviceError, "got *cpu:9", best_device());
}
TEST_CASE("child: the first use from many threads at once", "[.child][race]") {
  std::latch start(16);
  std::vector<std::thread> threads;
  std::vector<double> sums(16, 0);
  for (std::size_t i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      const Tensor x = ones({64, 3}, {.device = Device(i % 2 == 0 ? "cpu:0" : "cpu:1")});
      sums[i] = (x + x).sum().item<double>();
    });
  for (std::thread& t : threads) t.join();
  CHECK(sums == std::vector<double>(16, 384.0));
  CHECK(device_count(DeviceType::cpu) == 2);
}

TEST_CASE("device: the count of a fresh process", "[device][process]") {
  CHECK_CHILD("-u BRAID_CPU_DEVICES BRAID_TESTS_DEFAULT_DEVICES=1", "[.child][default]");
  CHECK_CHILD("BRAID_CPU_DEVICES=3", "[.child][three]");
  CHECK_CHILD("BRAID_CPU_DEVICES=3", "[.child][program]");
  for (const char* wrong : {"0", "65", "-1", "two", "2x", "99999999999999999999"})
    CHECK_CHILD(std::string("BRAID_CPU_DEVICES=") + wrong, "[.child][wrong]");
  CHECK_CHILD("BRAID_CPU_DEVICES=2 BRAID_THREADS=3", "[.child][threads]");
  for (const char* wrong : {"abc", "0", "257"})
    CHECK_CHILD(std::string("BRAID_THREADS=") + wrong, "[.child][wrong-threads]");
  CHECK_CHILD("BRAID_CPU_DEVICES=2 BRAID_DEVICE=cpu:1", "[.child][best]");
  CHECK_CHILD("BRAID_CPU_DEVICES=2 BRAID_DEVICE=cpu:9", "[.child][worst]");
}

TEST_CASE("device: the first use may come from many threads at once", "[device][process]") {
  for (int i = 0; i < 10; ++i) CHECK_CHILD("BRAID_CPU_DEVICES=2", "[.child][race]");
}

TEST_CASE("device: a null pointer is no name", "[device][errors]") {
  const char* const none = nullptr;
  CHECK_THROWS_TEXT(DeviceError, "device: expected cpu, cpu:<index>, cuda or cuda:<index>, got a",
                    (void)Device(none));
  CHECK_THROWS_TEXT(ArgumentError, "padding: expected \"same\" or \"valid\", got a null pointer",
                    (void)ConvPadding(none));
}

TEST_CASE("device: a library that is linked is found by its name", "[device]") {
  CHECK(find_linked_library("braid_tests_library") == nullptr);
  const FindFunction find = [](const char* name) noexcept -> LibraryFunction {
    return std::string_view(name) == "f" ? [] {} : LibraryFunction{nullptr};
  };
  register_linked_library("braid_tests_library", find);
  REQUIRE(find_linked_library("braid_tests_library") != nullptr);
  CHECK(find_linked_library("braid_tests_library")("f") != nullptr);
  CHECK(find_linked_library("braid_tests_library")("g") == nullptr);
  CHECK(find_linked_library("braid_tests") == nullptr);
}

}  // namespace braid::test
