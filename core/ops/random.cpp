#include <braid/core/random.hpp>

#include <atomic>
#include <limits>
#include <utility>

#include <braid/core/internal/kernel_args/random.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/ops/compare.hpp>
#include <braid/core/ops/create.hpp>

#include "common.hpp"
#include "random_streams.hpp"

namespace braid {
namespace {

std::atomic<std::uint64_t> global_seed{0}, global_stream{0};

constexpr const char* kSeedOutside = "a call outside of a captured step, got one inside";

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::float16: return 65504;
    case DType::bfloat16: return 0x1.fep127;
    case DType::float32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

/// Returns the smallest and the largest integer that a type can hold, within int64.
std::pair<std::int64_t, std::int64_t> whole_numbers_of(DType dtype) {
  switch (dtype) {
    case DType::bool_: return {0, 1};
    case DType::uint8: return {0, 255};
    case DType::int32: return {INT32_MIN, INT32_MAX};
    case DType::float16: return {-65504, 65504};
    default: return {INT64_MIN, INT64_MAX};
  }
}

/// The seed of the thread's random ops.
std::uint64_t seed_of_thread() noexcept {
  const RandomScope* const scope = thread_state().random;
  return scope ? scope->seed() : initial_seed();
}

/// What replays change in the numbers of the next random op, if the thread records a step.
const RandomShift* recorded_shift() {
  const detail::StepCapture* const capture = detail::StepCapture::current();
  if (capture == nullptr) return nullptr;
  if (const RandomScope* const scope = thread_state().random;
      scope != nullptr && !scope->part().of_generator)
    throw CaptureError(
        "captured_step: expected random ops that use the generator, got one in a RandomScope");
  return capture->random_shift();
}

Tensor fill_random(const char* op, RandomKind kind, const Shape& shape,
                   const FactoryOptions& options, DType natural, double low, double high,
                   std::int64_t ilow, std::int64_t ihigh) {
  const DType dtype = options.dtype.value_or(natural);
  if (kind != RandomKind::integers && !is_floating(dtype))
    throw DTypeError(str(op, ": expected a floating point type, got ", dtype));
  const Tensor t = ops::made(shape, dtype, options);
  RandomArgs args{kind, dtype, t.id()->data(), t.numel(), 0, 0, low, high, ilow, ihigh};
  if (!options.seed) args.shift = recorded_shift();
  args.seed = options.seed.value_or(seed_of_thread());
  args.stream = options.seed ? 0 : next_random_stream();
  if (t.numel()) launch(op, t.device(), &KernelTable::random, args);
  return ops::finish(t, options);
}

}  // namespace

void manual_seed(std::uint64_t seed) {
  detail::StepCapture::refuse("manual_seed", kSeedOutside);
  global_seed.store(seed);
  global_stream.store(0);
}
RandomState random_state() noexcept { return {global_seed.load(), global_stream.load()}; }
void set_random_state(const RandomState& state) {
  detail::StepCapture::refuse("set_random_state", kSeedOutside);
  global_seed.store(state.seed);
  global_stream.store(state.stream);
}
std::uint64_t initial_seed() noexcept { return global_seed.load(std::memory_order_relaxed); }
std::uint64_t next_random_stream() noexcept {
  RandomScope* const forward = thread_state().random;
  if (!forward) return skip_random_streams(1).stream;
  return forward->take() + (forward->part().index << 48);
}

RandomScope::RandomScope(std::uint64_t first, const Part& part,
                         std::optional<std::uint64_t> seed) noexcept
    : first_(first), seed_(seed), part_(part), before_(thread_state().random) {
  thread_state().random = this;
}
RandomScope::~RandomScope() { thread_state().random = before_; }
RandomState skip_random_streams(std::uint64_t streams) noexcept {
  if (auto* const capture = detail::StepCapture::current()) capture->takes_streams(streams);
  return {global_seed.load(), global_stream.fetch_add(streams, std::memory_order_relaxed)};
}
void ops::take_back_random_streams(const RandomState& before, std::uint64_t streams) noexcept {
  std::uint64_t now = before.stream + streams;
  global_stream.compare_exchange_strong(now, before.stream);
}
const RandomShift* ops::shift_of(const char* op, const RandomKey& key) {
  if (key.shift == nullptr) return nullptr;
  if (const auto* const capture = detail::StepCapture::current();
      capture == nullptr || capture->random_shift() != key.shift)
    throw CaptureError(str(op,
                           ": expected a backward within the captured step that drew the random "
                           "numbers, got one after it"));
  return key.shift;
}

namespace {

RandomKey key_along(int dim, std::int64_t rows) {
  RandomScope* const forward = thread_state().random;
  const RandomShift* const shift = recorded_shift();
  if (!forward) return {initial_seed(), next_random_stream(), dim, 0, shift};
  const RandomScope::Part& part = forward->part();
  const bool fits = part.rows > 0 && rows % part.rows == 0;
  return {forward->seed(), forward->take(), dim, fits ? part.first_row * (rows / part.rows) : 0,
          shift};
}

}  // namespace

RandomKey next_random_key(const Shape& shape) {
  const RandomScope* const forward = thread_state().random;
  int dim = forward ? forward->part().dim : 0;
  if (dim < 0) dim += shape.rank();
  if (dim < 0 || dim >= shape.rank()) dim = 0;
  return key_along(dim, shape.rank() > 0 ? shape[dim] : 1);
}
RandomKey next_random_key_of_rows(std::int64_t rows) { return key_along(0, rows); }

Tensor randn(const Shape& shape, const FactoryOptions& options) {
  return fill_random("randn", RandomKind::normal, shape, options, DType::float32, 0, 1, 0, 0);
}
Tensor rand(const Shape& shape, const FactoryOptions& options) {
  return fill_random("rand", RandomKind::uniform, shape, options, DType::float32, 0, 1, 0, 0);
}
Tensor uniform(const Shape& shape, double low, double high, const FactoryOptions& options) {
  if (!(low <= high))
    throw ArgumentError(str("uniform: expected low <= high, got ", low, " and ", high));
  const DType dtype = options.dtype.value_or(DType::float32);
  if (const double largest = largest_of(dtype);
      low < -largest || high > largest || high - low > largest)
    throw ArgumentError(str("uniform: expected bounds, and a distance between them, of at most ",
                            largest, " for ", dtype, ", got ", low, " and ", high));
  return fill_random("uniform", RandomKind::uniform, shape, options, DType::float32, low, high, 0,
                     0);
}

Tensor normal(double mean, double std, const Shape& shape, const FactoryOptions& options) {
  if (!(std >= 0)) throw ArgumentError(str("normal: expected std >= 0, got ", std));
  FactoryOptions plain = options;
  plain.requires_grad = false;
  const DType dtype = options.dtype.value_or(DType::float32);
  if (!is_floating(dtype))
    throw DTypeError(str("normal: expected a floating point type, got ", dtype));
  return ops::finish(randn(shape, plain).mul_(std).add_(mean), options);
}

Tensor bernoulli(const Tensor& x) {
  ops::check_floating("bernoulli", x);
  const FactoryOptions options{.device = x.device(), .dtype = DType::float64};
  return lt(rand(x.shape(), options), x.detach().to(DType::float64)).to(x.dtype());
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
               const FactoryOptions& options) {
  if (low >= high)
    throw ArgumentError(str("randint: expected low < high, got ", low, " and ", high));
  const DType dtype = options.dtype.value_or(DType::int64);
  const auto [least, most] = whole_numbers_of(dtype);
  if (low < least || high - 1 > most)
    throw ArgumentError(str("randint: expected numbers from ", least, " to ", most, " for ", dtype,
                            ", got ", low, " to ", high - 1));
  if (dtype == DType::int64)
    return fill_random("randint", RandomKind::integers, shape, options, DType::int64, 0, 0, low,
                       high);
  FactoryOptions plain =
      options;  // the same numbers for all dtypes: drawn as int64, then converted
  plain.device = ops::device_of(options);
  plain.dtype = DType::int64;
  plain.requires_grad = plain.pinned_memory = false;
  const Tensor t =
      fill_random("randint", RandomKind::integers, shape, plain, DType::int64, 0, 0, low, high)
          .to(dtype);
  return ops::finish(t, options);
}

Tensor randperm(std::int64_t n, const FactoryOptions& options) {
  if (n < 0) throw ArgumentError(str("randperm: expected n >= 0, got ", n));
  const DType dtype = options.dtype.value_or(DType::int64);
  if (n > ops::exact_below(dtype))
    throw ArgumentError(str("randperm: expected at most ", ops::exact_below(dtype),
                            " numbers, which ", dtype, " represents exactly, got ", n));
  FactoryOptions host = options;
  host.device = Device();
  host.dtype = DType::int64;
  host.requires_grad = host.pinned_memory = false;
  const Device device = ops::device_of(options);
  const Tensor order = arange(n, {.device = Device()});
  // Takes the remainder of 62-bit draws. The bias is below 2^-30 for any n that fits in memory.
  const Tensor draws = n > 1 ? randint(0, std::int64_t{1} << 62, {n - 1}, host) : order;
  auto* p = order.data<std::int64_t>();
  const auto* d = draws.data<std::int64_t>();
  for (std::int64_t i = n - 1; i > 0; --i) std::swap(p[i], p[d[n - 1 - i] % (i + 1)]);
  const Tensor placed = order.to(device, dtype);
  return options.pinned_memory ? placed.pin_memory() : placed;
}

}  // namespace braid
