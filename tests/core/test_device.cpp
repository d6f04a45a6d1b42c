#include <latch>
#include <thread>

#include <braid/core/backend.hpp>

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

}  // namespace braid::test
