// What the checker knows between kernels: which operation touched what, what the allocator gave
// out, whose memory it is.
#include <algorithm>
#include <functional>

#include "operation_kernels.hpp"
#include "simt/device_memory.hpp"
#include "simt/error.hpp"
#include "simt/launch.hpp"
#include "support.hpp"
#include "support/catch.hpp"

namespace braid::simt_tests {

namespace {

// Operations 2i and 2i + 1 run on two streams; an operation comes after those of its own stream
// with smaller numbers, and after all that `joined` says.
std::uint32_t joined = 0;
bool by_stream(std::uint32_t earlier, std::uint32_t op) {
  return earlier < op && (earlier % 2 == op % 2 || op <= joined || earlier <= joined);
}
std::string named(std::uint32_t op) { return "operation " + std::to_string(op); }

class Streams {
 public:
  Streams() {
    joined = 0;
    simt::detail::set_op_hooks(&by_stream, &named);
  }
  ~Streams() {
    simt::set_current_op(0, -1);
    simt::detail::set_op_hooks(nullptr, nullptr);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
};

simt::Finding finding_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const simt::Error& e) {
    return e.finding();
  }
  FAIL("no error");
  return {};
}

void as(std::uint32_t op, const std::function<void()>& f) {
  simt::set_current_op(op, 0);
  f();
}

}  // namespace

#if defined(BRAID_SIMT_CHECK)
TEST_CASE("simt: the kernels of these tests are instrumented", "[simt][operations]") {
  CHECK(instrumented());
}
#endif

TEST_CASE("simt: a kernel that reads what another stream writes, without an event",
          "[simt][operations]") {
  SIMT_CHECKED_OR_RETURN();
  const Streams streams;
  const DeviceArray<float> a(std::vector<float>(64, 1.0f)), b(64);
  as(2, [&] { fill(a.data(), 2.0f, 64); });
  as(4, [&] { copy(a.data(), b.data(), 64); });  // the same stream
  std::string text;
  try {
    as(5, [&] { copy(a.data(), b.data(), 64); });
  } catch (const simt::Error& e) {
    CHECK(e.finding() == simt::Finding::stream_race);
    text = e.what();
  }
  CHECK(text.find("operation 2") != std::string::npos);
  CHECK(text.find("operation 5") != std::string::npos);
  CHECK(text.find("operation_kernels.cu:") != std::string::npos);
  joined = 5;  // an event orders the streams
  CHECK_NOTHROW(as(7, [&] { copy(a.data(), b.data(), 64); }));
}

TEST_CASE("simt: a kernel that overwrites what another stream reads", "[simt][operations]") {
  SIMT_CHECKED_OR_RETURN();
  const Streams streams;
  const DeviceArray<float> a(std::vector<float>(64, 1.0f)), b(64), c(64);
  as(2, [&] { copy(a.data(), b.data(), 64); });
  as(3, [&] { copy(a.data(), c.data(), 64); });  // two readers at once are fine
  CHECK(finding_of([&] { as(5, [&] { fill(a.data(), 1.0f, 64); }); }) ==
        simt::Finding::stream_race);
  CHECK(finding_of([&] { as(8, [&] { fill(a.data(), 1.0f, 64); }); }) ==
        simt::Finding::stream_race);
  joined = 9;
  CHECK_NOTHROW(as(11, [&] { fill(a.data(), 1.0f, 64); }));
}

TEST_CASE("simt: copies take part in the order", "[simt][operations]") {
  SIMT_CHECKED_OR_RETURN();
  const Streams streams;
  const DeviceArray<float> a(std::vector<float>(64, 1.0f)), b(64);
  as(2, [&] { simt::check_range(a.data(), 256, true); });
  CHECK(finding_of([&] { as(3, [&] { simt::check_range(a.data() + 5, 4, false); }); }) ==
        simt::Finding::stream_race);
  CHECK(finding_of([&] { as(3, [&] { copy(a.data(), b.data(), 64); }); }) ==
        simt::Finding::stream_race);
  as(4, [&] { simt::check_range(a.data(), 256, false); });
  CHECK(finding_of([&] { as(5, [&] { simt::check_range(a.data(), 8, true); }); }) ==
        simt::Finding::stream_race);
  CHECK(finding_of([&] { as(6, [&] { simt::check_range(a.data() + 60, 20, true); }); }) ==
        simt::Finding::out_of_bounds);
  // the host is ordered with everything
  CHECK_NOTHROW(as(0, [&] { simt::check_range(a.data(), 256, true); }));
}

TEST_CASE("simt: parts of a segment that the allocator has not given out", "[simt][operations]") {
  SIMT_CHECKED_OR_RETURN();
  const DeviceArray<float> segment(4096);
  simt::annotate_freed(segment.data(), 4096 * sizeof(float));
  float* block = segment.data() + 1024;
  CHECK(finding_of([&] { fill(block, 1.0f, 16); }) == simt::Finding::use_after_free);
  simt::annotate_allocated(block, 10 * sizeof(float) + 1);
  CHECK_NOTHROW(fill(block, 1.0f, 10));
  CHECK(finding_of([&] { fill(block, 1.0f, 11); }) == simt::Finding::out_of_bounds);
  CHECK(finding_of([&] { simt::check_range(block, 44, true); }) == simt::Finding::out_of_bounds);
  const DeviceArray<float> out(64);
  CHECK_NOTHROW(copy(block, out.data(), 10));
  simt::annotate_freed(block, 10 * sizeof(float) + 1);
  CHECK(finding_of([&] { copy(block, out.data(), 10); }) == simt::Finding::use_after_free);
  simt::annotate_allocated(block, 64 * sizeof(float));
  // what was there before is gone
  CHECK(finding_of([&] { copy(block, out.data(), 10); }) == simt::Finding::uninitialised);
}

TEST_CASE("simt: a copy of uninitialised memory is uninitialised", "[simt][operations]") {
  SIMT_CHECKED_OR_RETURN();
  const DeviceArray<float> a(64), b(std::vector<float>(64, 1.0f)), out(64);
  simt::check_range(a.data(), 32 * sizeof(float), true);
  simt::check_copy(b.data(), a.data(), 64 * sizeof(float));
  CHECK_NOTHROW(copy(b.data(), out.data(), 32));
  CHECK(finding_of([&] { copy(b.data(), out.data(), 33); }) == simt::Finding::uninitialised);
}

TEST_CASE("simt: memory of another device needs peer access", "[simt][operations]") {
  SIMT_CHECKED_OR_RETURN();
  const DeviceArray<float> here(std::vector<float>(64, 1.0f), 0),
      there(std::vector<float>(64, 1.0f), 1);
  const Streams streams;
  CHECK(finding_of([&] { as(2, [&] { copy(there.data(), here.data(), 64); }); }) ==
        simt::Finding::wrong_device);
  simt::set_peer_access(0, 1, true);
  CHECK_NOTHROW(as(2, [&] { copy(there.data(), here.data(), 64); }));
  simt::set_peer_access(0, 1, false);
  CHECK(finding_of([&] { as(2, [&] { copy(there.data(), here.data(), 64); }); }) ==
        simt::Finding::wrong_device);
}

TEST_CASE("simt: the registry of memory", "[simt][operations]") {
  alignas(256) static char memory[512];
  CHECK_FALSE(simt::find_memory(memory).has_value());
  simt::register_memory(memory, 300, simt::MemoryKind::pinned, 1);
  const auto range = simt::find_memory(memory + 299);
  REQUIRE(range.has_value());
  CHECK(range->begin == memory);
  CHECK(range->bytes == 300);
  CHECK(range->kind == simt::MemoryKind::pinned);
  CHECK(range->device == 1);
  CHECK_FALSE(simt::find_memory(memory + 300).has_value());
  CHECK_THROWS_AS(simt::register_memory(memory + 100, 8, simt::MemoryKind::device, 0),
                  InternalError);
  CHECK_THROWS_AS(simt::register_memory(memory - 8, 16, simt::MemoryKind::device, 0),
                  InternalError);
  const DeviceArray<float> out(64);
  // the host may have written it
  CHECK_NOTHROW(copy(reinterpret_cast<float*>(memory), out.data(), 64));
  simt::unregister_memory(memory);
  CHECK_FALSE(simt::find_memory(memory).has_value());
  CHECK(finding_of([&] { copy(reinterpret_cast<float*>(memory), out.data(), 64); }) ==
        simt::Finding::invalid_address);
}

TEST_CASE("simt: two streams at neighbouring bytes of one word", "[simt][operations]") {
  SIMT_CHECKED_OR_RETURN();
  const Streams streams;
  const DeviceArray<unsigned char> a(std::vector<unsigned char>(32, 0)), b(32), c(32);
  CHECK_NOTHROW(as(2, [&] { fill_bytes(a.data(), 5); }));
  CHECK_NOTHROW(as(3, [&] { fill_bytes(a.data() + 5, 5); }));
  CHECK_NOTHROW(as(4, [&] { simt::check_range(a.data(), 5, true); }));
  CHECK_NOTHROW(as(5, [&] { simt::check_range(a.data() + 5, 5, true); }));
  CHECK_NOTHROW(as(6, [&] { copy_bytes(a.data(), b.data(), 5); }));
  CHECK_NOTHROW(as(7, [&] { copy_bytes(a.data() + 5, c.data(), 5); }));
  CHECK_NOTHROW(as(8, [&] { fill_bytes(a.data(), 5); }));
  CHECK(finding_of([&] { as(9, [&] { fill_bytes(a.data() + 4, 2); }); }) ==
        simt::Finding::stream_race);
  CHECK(finding_of([&] { as(11, [&] { simt::check_range(a.data() + 4, 1, false); }); }) ==
        simt::Finding::stream_race);
}

TEST_CASE("simt: what a stream wrote beside the bytes of another is remembered",
          "[simt][operations]") {
  SIMT_CHECKED_OR_RETURN();
  const Streams streams;
  const DeviceArray<unsigned char> a(std::vector<unsigned char>(32, 0)), b(32);
  as(2, [&] { fill_bytes(a.data(), 1); });
  as(3, [&] { fill_bytes(a.data() + 1, 1); });
  CHECK(finding_of([&] { as(5, [&] { copy_bytes(a.data(), b.data(), 1); }); }) ==
        simt::Finding::stream_race);
  joined = 5;
  CHECK_NOTHROW(as(7, [&] { copy_bytes(a.data(), b.data(), 4); }));
}

TEST_CASE("simt: three streams read, and one writes that waits for some of them",
          "[simt][operations]") {
  SIMT_CHECKED_OR_RETURN();
  const Streams streams;
  simt::detail::set_op_hooks(
      [](std::uint32_t earlier, std::uint32_t op) {
        return op == 5 ? earlier == 2 || earlier == 4 : op == 6;
      },
      &named);
  const DeviceArray<float> a(std::vector<float>(64, 1.0f)), b(64), c(64), d(64);
  as(2, [&] { copy(a.data(), b.data(), 64); });
  as(3, [&] { copy(a.data(), c.data(), 64); });
  as(4, [&] { copy(a.data(), d.data(), 64); });
  CHECK(finding_of([&] { as(5, [&] { fill(a.data(), 1.0f, 64); }); }) ==
        simt::Finding::stream_race);
  CHECK_NOTHROW(as(6, [&] { fill(a.data(), 1.0f, 64); }));
}

TEST_CASE("simt: two streams count in one word, and one is waited for", "[simt][operations]") {
  SIMT_CHECKED_OR_RETURN();
  const Streams streams;
  const DeviceArray<unsigned> sum(std::vector<unsigned>{0, 0}), out(1);
  as(2, [&] { count(sum.data()); });
  CHECK_NOTHROW(as(3, [&] { count(sum.data()); }));
  CHECK(finding_of([&] { as(5, [&] { read_count(sum.data(), out.data()); }); }) ==
        simt::Finding::stream_race);
  CHECK(finding_of([&] { as(5, [&] { simt::check_range(sum.data(), 4, false); }); }) ==
        simt::Finding::stream_race);
  CHECK_NOTHROW(as(7, [&] { count(sum.data()); }));
  joined = 9;
  CHECK_NOTHROW(as(11, [&] { read_count(sum.data(), out.data()); }));
}

}  // namespace braid::simt_tests
