#include "kernels/kernel_support.hpp"

#include <algorithm>
#include <set>

#include "support/sanitized.hpp"

namespace kernel_test {

bool has_device() { return !on_cuda() || braid::device_count(braid::DeviceType::cuda) > 0; }
const braid::DeviceContext& context() {
  return braid::device_context(braid::Device(on_cuda() ? "cuda:0" : "cpu"));
}
const braid::KernelTable& kernels() { return *context().kernels; }
const braid::KernelTable& cpu_kernels() {
  return *braid::device_context(braid::Device("cpu")).kernels;
}
braid::Stream& cpu_stream() { return *braid::device_context(braid::Device("cpu")).stream; }

const Sizes kSmallSizes{0, 1, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 1025};
const Sizes& sizes() {
  static const Sizes all{0,  1,  7,   8,   15,  16,   17,   31,   33,    63,
                         64, 65, 255, 256, 257, 1023, 1024, 1025, 16385, 100003};
  return on_cuda() ? kSmallSizes : all;
}
const std::vector<DType> kAll{DType::bool_,   DType::uint8,    DType::int32,   DType::int64,
                              DType::float16, DType::bfloat16, DType::float32, DType::float64};
const std::vector<DType> kFloats{DType::float16, DType::bfloat16, DType::float32, DType::float64};
const std::vector<DType> kIntegers{DType::uint8, DType::int32, DType::int64};

Loop dense(std::int64_t n) {
  Loop loop{};
  loop.rank = 1;
  loop.n = n;
  loop.size[0] = n;
  for (auto& operand : loop.stride) operand[0] = 1;
  loop.dense = true;
  return loop;
}
Loop strided(Strides sizes, std::initializer_list<Strides> strides) {
  Loop loop{};
  loop.rank = static_cast<int>(sizes.size());
  loop.n = 1;
  int d = 0;
  for (const std::int64_t size : sizes) loop.size[d++] = size, loop.n *= size;
  int k = 0;
  for (const auto& operand : strides) {
    d = 0;
    for (const std::int64_t stride : operand) loop.stride[k][d++] = stride;
    ++k;
  }
  return loop;
}
std::int64_t offset(const Loop& loop, int operand, std::int64_t linear) {
  std::int64_t result = 0;
  for (int d = loop.rank - 1; d >= 0; --d) {
    result += linear % loop.size[d] * loop.stride[operand][d];
    linear /= loop.size[d];
  }
  return result;
}
std::int64_t extent(const Loop& loop, int operand) {
  std::int64_t last = 0;
  for (int d = 0; d < loop.rank; ++d) {
    if (loop.size[d] == 0) return 0;
    last += (loop.size[d] - 1) * loop.stride[operand][d];
  }
  return last + 1;
}

double get(DType t, const void* data, std::int64_t i) {
  switch (t) {
    case DType::bool_:
    case DType::uint8: return static_cast<const std::uint8_t*>(data)[i];
    case DType::int32: return static_cast<const std::int32_t*>(data)[i];
    case DType::int64: return static_cast<double>(static_cast<const std::int64_t*>(data)[i]);
    case DType::float16:
      return static_cast<double>(static_cast<float>(static_cast<const braid::float16*>(data)[i]));
    case DType::bfloat16:
      return static_cast<double>(static_cast<float>(static_cast<const braid::bfloat16*>(data)[i]));
    case DType::float32: return static_cast<double>(static_cast<const float*>(data)[i]);
    case DType::float64: return static_cast<const double*>(data)[i];
  }
  return 0;
}
void set(DType t, void* data, std::int64_t i, double x) {
  switch (t) {
    case DType::bool_: static_cast<std::uint8_t*>(data)[i] = x != 0; break;
    case DType::uint8:
      static_cast<std::uint8_t*>(data)[i] = static_cast<std::uint8_t>(static_cast<std::int64_t>(x));
      break;
    case DType::int32: static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(x); break;
    case DType::int64: static_cast<std::int64_t*>(data)[i] = static_cast<std::int64_t>(x); break;
    case DType::float16:
      static_cast<braid::float16*>(data)[i] = braid::float16(static_cast<float>(x));
      break;
    case DType::bfloat16:
      static_cast<braid::bfloat16*>(data)[i] = braid::bfloat16(static_cast<float>(x));
      break;
    case DType::float32: static_cast<float*>(data)[i] = static_cast<float>(x); break;
    case DType::float64: static_cast<double*>(data)[i] = x; break;
  }
}

/// Host memory [aligned guard | shift | elements | guard], and its copy on the device.
struct Buffer::Memory {
  static constexpr std::size_t kGuard = 256;
  static constexpr unsigned char kMark = 0xA5;

  std::size_t bytes, guard, before;  // sizes of the elements, of each guard, of the shift
  std::vector<unsigned char> store;
  unsigned char* first;  // aligned start of the whole memory
  braid::Block block;
  bool written_here = true, written_there = false;

  Memory(std::size_t size, std::size_t shift, bool tight)
      : bytes(size), guard(tight && BRAID_SANITIZED ? 0 : kGuard), before(shift) {
    store.assign(total() + (guard == 0 ? 0 : 63), kMark);
    const auto base = reinterpret_cast<std::uintptr_t>(store.data());
    first = store.data() + (guard == 0 ? 0 : (base + 63) / 64 * 64 - base);
  }
  ~Memory() {
    if (block.data == nullptr) {
      check();
    } else {
      all().erase(this);
      context().backend->release(block, *context().stream);
    }
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] std::size_t total() const { return 2 * guard + before + bytes; }
  [[nodiscard]] unsigned char* elements() const { return first + guard + before; }
  void* device() {
    if (!on_cuda()) return elements();
    if (block.data == nullptr) {
      block = context().backend->allocate(std::max<std::size_t>(total(), 1), *context().stream);
      all().insert(this);
    }
    send();
    return static_cast<unsigned char*>(block.data) + guard + before;
  }
  void send() {
    written_there = true;
    if (written_here)
      context().backend->copy(
          {block.data, context().stream->device(), first, braid::Device(), total()},
          *context().stream);
    written_here = false;
  }
  void receive() {
    if (!written_there) return;
    context().backend->copy(
        {first, braid::Device(), block.data, context().stream->device(), total()},
        *context().stream);
    context().stream->synchronize();
    written_there = false;
    check();
  }
  void check() const {
    std::size_t changed = 0;
    for (const unsigned char* p = first; p < first + total(); ++p)
      changed += (p < elements() || p >= elements() + bytes) && *p != kMark;
    if (changed > 0) FAIL_CHECK(changed << " bytes around a buffer are not as they were");
  }
  /// The buffers that have a copy on the device.
  static std::set<Memory*>& all() {
    static std::set<Memory*> list;
    return list;
  }
};

braid::Stream& stream() {
  for (Buffer::Memory* memory : Buffer::Memory::all()) memory->send();
  return *context().stream;
}

Buffer::Buffer(DType dtype, std::int64_t n, std::int64_t shift, bool tight)
    : dtype_(dtype),
      n_(n),
      memory_(std::make_unique<Memory>(static_cast<std::size_t>(n) * braid::size_of(dtype),
                                       static_cast<std::size_t>(shift) * braid::size_of(dtype),
                                       tight)) {}
Buffer::Buffer(const Buffer& other) : Buffer(other.dtype_, other.n_) {
  const auto from = other.bytes();
  if (!from.empty()) std::memcpy(host(), from.data(), from.size());
}
Buffer::Buffer(Buffer&&) noexcept = default;
Buffer::~Buffer() = default;
void* Buffer::data() const { return memory_->device(); }
void* Buffer::host() {
  memory_->receive();
  memory_->written_here = true;
  return memory_->elements();
}
double Buffer::operator[](std::int64_t i) const {
  memory_->receive();
  return get(dtype_, memory_->elements(), i);
}
void Buffer::put(std::int64_t i, double x) { set(dtype_, host(), i, x); }
double product_error(braid::Float32Precision precision) {
  switch (precision) {
    case braid::Float32Precision::tf32: return 2.01 * 0x1p-11;
    case braid::Float32Precision::tf32x3: return 0x1p-21;
    default: return 0;
  }
}
const std::vector<std::pair<DType, braid::Float32Precision>>& floats_by_precision() {
  using braid::Float32Precision;
  static const auto list = [] {
    std::vector<std::pair<DType, Float32Precision>> all;
    for (const DType t : kFloats) all.emplace_back(t, Float32Precision::exact);
    if (on_cuda())
      for (const Float32Precision p : {Float32Precision::tf32x3, Float32Precision::tf32})
        all.emplace_back(DType::float32, p);
    return all;
  }();
  return list;
}

Buffer& Buffer::pattern(std::uint32_t seed, double scale) {
  std::uint32_t state = seed * 2654435761u + 12345u;
  for (std::int64_t i = 0; i < n_; ++i) {
    state = state * 1664525u + 1013904223u;
    const double u = static_cast<double>(state >> 8) * 0x1p-24;
    if (dtype_ == DType::bool_) put(i, u > 0.5);
    else if (dtype_ == DType::uint8) put(i, std::floor(u * 200));
    else if (!braid::is_floating(dtype_)) put(i, std::floor(u * 200) - 100);
    else put(i, (u * 4 - 2) * scale);
  }
  return *this;
}
Buffer& Buffer::fill(double x) {
  for (std::int64_t i = 0; i < n_; ++i) put(i, x);
  return *this;
}
std::vector<unsigned char> Buffer::bytes() const {
  memory_->receive();
  return {memory_->elements(), memory_->elements() + memory_->bytes};
}

Buffer indices(const std::vector<std::int64_t>& list) {
  Buffer buffer(DType::int64, static_cast<std::int64_t>(list.size()));
  if (!list.empty()) std::memcpy(buffer.host(), list.data(), list.size() * sizeof(std::int64_t));
  return buffer;
}

std::int64_t changed_outside(const Buffer& out, const std::vector<unsigned char>& before,
                             const Loop& loop) {
  std::vector<bool> named(static_cast<std::size_t>(out.size()));
  for (std::int64_t i = 0; i < loop.n; ++i)
    named[static_cast<std::size_t>(offset(loop, 0, i))] = true;
  const auto after = out.bytes();
  const std::size_t element = braid::size_of(out.dtype());
  std::int64_t changed = 0;
  for (std::size_t i = 0; i < after.size(); ++i)
    changed += !named[i / element] && before[i] != after[i];
  return changed;
}

double ulp(DType t, double x) {
  int bits = 0, lowest = 0;
  switch (t) {
    case DType::float16: bits = 10, lowest = -24; break;
    case DType::bfloat16: bits = 7, lowest = -133; break;
    case DType::float32: bits = 23, lowest = -149; break;
    default: bits = 52, lowest = -1074; break;
  }
  if (x == 0 || !std::isfinite(x)) return std::ldexp(1.0, lowest);
  return std::ldexp(1.0, std::max(std::ilogb(x) - bits, lowest));
}
double half_ulp(DType t, double x) { return braid::size_of(t) == 2 ? 0.51 * ulp(t, x) : 0; }
double unit(DType t) { return t == DType::float64 ? 0x1p-53 : 0x1p-24; }
double log2_up(std::int64_t n) { return n > 1 ? std::ceil(std::log2(static_cast<double>(n))) : 0; }
double rounded(DType t, double x) {
  alignas(8) unsigned char storage[8] = {};
  set(t, storage, 0, x);
  return get(t, storage, 0);
}
bool close(DType t, double got, double expected, double ulps) {
  if (!braid::is_floating(t)) return got == expected;
  if (std::isnan(expected)) return std::isnan(got);
  const double target = rounded(t, expected);
  if (got == target) return std::signbit(got) == std::signbit(target) || target != 0 || ulps > 0;
  if (!std::isfinite(got) || !std::isfinite(target)) {
    const double largest = t == DType::float16   ? 65504
                           : t == DType::float64 ? std::numeric_limits<double>::max()
                                                 : 3.3e38;
    return ulps > 0 && std::signbit(got) == std::signbit(target) && std::fabs(got) >= largest &&
           std::fabs(target) >= largest;
  }
  return std::fabs(got - expected) <= ulps * ulp(t, expected);
}

void check_threads(Buffer& result, const std::function<void()>& f) {
  if (on_cuda()) return f();
  const int before = braid::num_threads();
  braid::set_num_threads(1);
  f();
  const auto expected = result.bytes();
  for (const int threads : {2, 3, 5}) {
    std::memset(result.host(), 0x5A, expected.size());
    braid::set_num_threads(threads);
    f();
    CHECK(result.bytes() == expected);
  }
  braid::set_num_threads(before);
}

}  // namespace kernel_test
