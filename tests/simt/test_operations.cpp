// What the checker knows between kernels: which operation accessed what, what the allocator has
// allocated, and which device memory belongs to.
#include <functional>

#include "kernels.hpp"
#include "simt/stats.hpp"
#include "support.hpp"

namespace braid::simt_tests {

bool instrumented() {
  alignas(16) static float memory[4];
  simt::register_memory(memory, sizeof memory, simt::MemoryKind::device, 0);
  const auto before = simt::stats().accesses;
  run(fill_kernel, 1, 32, 0, memory, 1.0f, 4);
  simt::unregister_memory(memory);
  return simt::stats().accesses != before;
}

namespace {

// Even and odd operations run on two streams. An operation is ordered after the earlier operations
// of its own stream, and after those that `joined` adds.
std::uint32_t joined = 0;
bool by_stream(std::uint32_t earlier, std::uint32_t op) {
  return earlier < op && (earlier % 2 == op % 2 || op <= joined || earlier <= joined);
}
std::string named(std::uint32_t op) { return "operation " + std::to_string(op); }

class Streams {
 public:
  explicit Streams(bool (*order)(std::uint32_t, std::uint32_t) = &by_stream) {
    joined = 0;
    simt::detail::set_op_hooks(order, &named);
  }
  ~Streams() {
    simt::set_current_op(0, -1);
    simt::detail::set_op_hooks(nullptr, nullptr);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
};

using Work = std::function<void()>;

/// Checks that the operation's work has no finding.
void right(std::uint32_t op, const Work& f) {
  simt::set_current_op(op, 0);
  CHECK_NOTHROW(f());
}
void wrong(std::uint32_t op, const Work& f, simt::Finding finding = simt::Finding::stream_race) {
  simt::set_current_op(op, 0);
  CHECK(details_of(f).finding == finding);
}

DeviceArray<float> ones(int device = 0) {
  return DeviceArray<float>(std::vector<float>(64, 1.0f), device);
}
void fill(float* p) { run(fill_kernel, 2, 32, 0, p, 1.0f, 64); }
void copy(const float* from, float* to, int n = 64) {
  run(copy_kernel, (n + 31) / 32, 32, 0, from, to, n);
}
void write(const void* p, std::size_t bytes) { simt::check_range(p, bytes, true); }
void read(const void* p, std::size_t bytes) { simt::check_range(p, bytes, false); }

}  // namespace

#if defined(BRAID_SIMT_CHECK)
TEST_CASE("simt: the kernels of these tests are instrumented", "[operations]") {
  CHECK(instrumented());
}
#endif

TEST_CASE("simt: copies take part in the order", "[operations]") {
  SIMT_CHECKED_OR_RETURN();
  const Streams streams;
  const auto a = ones(), b = ones();
  right(2, [&] { write(a, 256); });
  wrong(3, [&] { read(a + 5, 4); });
  wrong(3, [&] { copy(a, b); });
  right(4, [&] { read(a, 256); });
  wrong(5, [&] { write(a, 8); });
  wrong(6, [&] { write(a + 60, 20); }, simt::Finding::out_of_bounds);
  right(0, [&] { write(a, 256); });  // the host is ordered with everything
}

TEST_CASE("simt: parts of a segment that the allocator has not given out", "[operations]") {
  SIMT_CHECKED_OR_RETURN();
  using enum simt::Finding;
  const DeviceArray<float> segment(4096);
  const auto out = ones();
  const auto fill_some = [](float* p, int n) { run(fill_kernel, 1, 32, 0, p, 1.0f, n); };
  simt::annotate_freed(segment, 4096 * sizeof(float));
  float* block = segment + 1024;
  wrong(0, [&] { fill_some(block, 16); }, use_after_free);
  simt::annotate_allocated(block, 10 * sizeof(float) + 1);
  right(0, [&] { fill_some(block, 10); });
  wrong(0, [&] { fill_some(block, 11); }, out_of_bounds);
  wrong(0, [&] { write(block, 44); }, out_of_bounds);
  right(0, [&] { copy(block, out, 10); });
  simt::annotate_freed(block, 10 * sizeof(float) + 1);
  wrong(0, [&] { copy(block, out, 10); }, use_after_free);
  simt::annotate_allocated(block, 64 * sizeof(float));
  wrong(0, [&] { copy(block, out, 10); }, uninitialised);  // the earlier contents are gone
}

TEST_CASE("simt: a copy of uninitialised memory is uninitialised", "[operations]") {
  SIMT_CHECKED_OR_RETURN();
  const DeviceArray<float> a(64);
  const auto b = ones(), out = ones();
  write(a, 32 * sizeof(float));
  simt::check_copy(b, a, 64 * sizeof(float));
  right(0, [&] { copy(b, out, 32); });
  wrong(0, [&] { copy(b, out, 33); }, simt::Finding::uninitialised);
}

TEST_CASE("simt: memory of another device needs peer access", "[operations]") {
  SIMT_CHECKED_OR_RETURN();
  const auto here = ones(0), there = ones(1);
  const Streams streams;
  wrong(2, [&] { copy(there, here); }, simt::Finding::wrong_device);
  simt::set_peer_access(0, 1, true);
  right(2, [&] { copy(there, here); });
  simt::set_peer_access(0, 1, false);
  wrong(2, [&] { copy(there, here); }, simt::Finding::wrong_device);
}

TEST_CASE("simt: the registry of memory", "[operations]") {
  alignas(256) static char memory[512];
  float* const floats = reinterpret_cast<float*>(memory);
  CHECK_FALSE(simt::find_memory(memory).has_value());
  simt::register_memory(memory, 300, simt::MemoryKind::pinned, 1);
  const auto range = simt::find_memory(memory + 299);
  REQUIRE(range.has_value());
  CHECK(range->begin == memory);
  CHECK(range->bytes == 300);
  CHECK(range->kind == simt::MemoryKind::pinned);
  CHECK(range->device == 1);
  CHECK_FALSE(simt::find_memory(memory + 300).has_value());
  for (const auto& [at, bytes] : {std::pair{100, 8}, {-8, 16}})
    CHECK_THROWS_AS(simt::register_memory(memory + at, static_cast<std::size_t>(bytes),
                                          simt::MemoryKind::device, 0),
                    InternalError);
  const auto out = ones();
  right(0, [&] { copy(floats, out); });  // the host may have written it
  simt::unregister_memory(memory);
  CHECK_FALSE(simt::find_memory(memory).has_value());
  wrong(0, [&] { copy(floats, out); }, simt::Finding::invalid_address);
}

TEST_CASE("simt: two streams at neighbouring bytes of one word", "[operations]") {
  SIMT_CHECKED_OR_RETURN();
  const Streams streams;
  const std::vector<unsigned char> zeros(32, 0);
  const DeviceArray<unsigned char> a(zeros), b(32), c(32), x(zeros), y(32);
  const auto fill_some = [](unsigned char* p, int n) { run(fill_bytes, 1, 32, 0, p, n); };
  const auto copy_some = [](const unsigned char* from, unsigned char* to, int n) {
    run(copy_bytes, 1, 32, 0, from, to, n);
  };
  right(2, [&] { fill_some(a, 5); });
  right(3, [&] { fill_some(a + 5, 5); });
  right(4, [&] { write(a, 5); });
  right(5, [&] { write(a + 5, 5); });
  right(6, [&] { copy_some(a, b, 5); });
  right(7, [&] { copy_some(a + 5, c, 5); });
  right(8, [&] { fill_some(a, 5); });
  wrong(9, [&] { fill_some(a + 4, 2); });
  wrong(11, [&] { read(a + 4, 1); });
  // the checker remembers what a stream wrote next to the bytes of another
  right(2, [&] { fill_some(x, 1); });
  right(3, [&] { fill_some(x + 1, 1); });
  wrong(5, [&] { copy_some(x, y, 1); });
  joined = 5;
  right(7, [&] { copy_some(x, y, 4); });
}

TEST_CASE("simt: three streams read, and one writes that waits for some of them", "[operations]") {
  SIMT_CHECKED_OR_RETURN();
  const Streams streams([](std::uint32_t earlier, std::uint32_t op) {
    return op == 5 ? earlier == 2 || earlier == 4 : op == 6;
  });
  const auto a = ones(), b = ones(), c = ones(), d = ones();
  right(2, [&] { copy(a, b); });
  right(3, [&] { copy(a, c); });
  right(4, [&] { copy(a, d); });
  wrong(5, [&] { fill(a); });
  right(6, [&] { fill(a); });
}

TEST_CASE("simt: two streams count in one word, and one is waited for", "[operations]") {
  SIMT_CHECKED_OR_RETURN();
  const Streams streams;
  const DeviceArray<unsigned> sum(std::vector<unsigned>{0, 0}), out(1);
  const auto count_up = [&] { run(count, 2, 32, 0, sum); };
  const auto look = [&] { run(read_count, 1, 32, 0, sum, out); };
  right(2, count_up);
  right(3, count_up);
  wrong(5, look);
  wrong(5, [&] { read(sum, 4); });
  right(7, count_up);
  joined = 9;
  right(11, look);
}

}  // namespace braid::simt_tests
