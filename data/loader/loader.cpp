#include <braid/data/loader.hpp>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/random.hpp>

namespace braid::data::detail {
namespace {

constexpr std::int64_t kAhead = 2;  // prefetched batches per worker

/// Throws WorkerError, with the current exception nested in it.
[[noreturn]] void fail(const Progress& progress, std::int64_t batch, std::int64_t epoch) {
  const std::exception_ptr original = std::current_exception();
  const std::string where = str("batch ", batch, " of epoch ", epoch);
  const std::string what = progress.item >= 0 ? str("get(", progress.item, ") failed in ", where)
                                              : str("making ", where, " failed");
  std::throw_with_nested(WorkerError(str("DataLoader: ", what, ": ", exception_type(original), ": ",
                                         exception_message(original))));
}

}  // namespace

struct Epoch::State {
  enum class Stage : std::uint8_t { open, ready, failed, retry };
  /// Holds one batch that a worker passes to the caller.
  struct Slot {
    Stage stage = Stage::open;
    void* batch = nullptr;
    std::exception_ptr error;
  };

  State(std::shared_ptr<const BatchMaker> m, EpochPlan p)
      : maker(std::move(m)), plan(std::move(p)), position(plan.first), ahead(plan.first) {
    const std::int64_t workers = std::min<std::int64_t>(plan.workers, plan.batches - plan.first);
    if (workers == 0) return;
    slots.resize(static_cast<std::size_t>(kAhead * workers));
    try {
      for (std::int64_t i = 0; i < workers; ++i) threads.emplace_back([this] { work(); });
    } catch (...) {
      const std::size_t started = threads.size();
      finish();
      std::throw_with_nested(
          WorkerError(str("DataLoader: expected ", workers, " worker threads, got ", started, ": ",
                          exception_message(std::current_exception()))));
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { finish(); }

  void finish() noexcept {
    {
      const std::lock_guard lock(mutex);
      stop.store(true, std::memory_order_relaxed);
    }
    room.notify_all();
    threads.clear();  // joins
    for (const Slot& slot : slots)
      if (slot.batch != nullptr) maker->destroy(slot.batch);
    slots.clear();
  }

  void* make(std::int64_t batch, const std::atomic<bool>* stopped) const {
    const NoGrad guard;
    const std::int64_t first = batch * plan.batch_size;
    const std::int64_t last =
        std::min(first + plan.batch_size, static_cast<std::int64_t>(plan.indices.size()));
    Progress progress{-1, stopped};
    try {
      return maker->make(
          std::span(plan.indices)
              .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)),
          progress);
    } catch (...) {
      fail(progress, batch, plan.epoch);
    }
  }

  Slot& slot(std::int64_t batch) { return slots[static_cast<std::size_t>(batch) % slots.size()]; }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      room.wait(lock, [&] {
        return stop || ahead == plan.batches ||
               ahead < position + static_cast<std::int64_t>(slots.size());
      });
      if (stop || ahead == plan.batches) return;
      const std::int64_t batch = ahead++;
      lock.unlock();
      void* made = nullptr;
      std::exception_ptr error;
      try {
        made = make(batch, &stop);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      Slot& to = slot(batch);
      to.batch = made;
      to.error = std::move(error);
      to.stage = to.error ? Stage::failed : Stage::ready;
      arrived.notify_one();
    }
  }

  void* take() {
    std::unique_lock lock(mutex);
    Slot& from = slot(position);
    arrived.wait(lock, [&] { return from.stage != Stage::open; });
    if (from.stage == Stage::failed) {
      from.stage = Stage::retry;  // the next call tries again, on the calling thread
      const std::exception_ptr error = std::exchange(from.error, nullptr);
      lock.unlock();
      std::rethrow_exception(error);
    }
    if (from.stage == Stage::retry) {
      lock.unlock();
      void* made = make(position, nullptr);
      lock.lock();
      from.batch = made;
    }
    from.stage = Stage::open;
    ++position;
    room.notify_one();
    return std::exchange(from.batch, nullptr);
  }

  void* next() {
    if (position == plan.batches) return nullptr;
    if (!slots.empty()) return take();
    void* made = make(position, nullptr);
    ++position;
    return made;
  }

  const std::shared_ptr<const BatchMaker> maker;
  const EpochPlan plan;
  std::int64_t position;    // the caller's next batch
  std::int64_t ahead;       // the workers' next batch
  std::vector<Slot> slots;  // empty: no workers
  std::mutex mutex;
  std::condition_variable room, arrived;
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
};

Epoch::Epoch(std::shared_ptr<const BatchMaker> maker, EpochPlan plan)
    : state_(std::make_unique<State>(std::move(maker), std::move(plan))) {}
Epoch::Epoch(Epoch&& other) noexcept = default;
Epoch& Epoch::operator=(Epoch&& other) noexcept = default;
Epoch::~Epoch() = default;
void* Epoch::next() { return state_->next(); }

LoaderOptions checked(LoaderOptions options, std::int64_t size) {
  if (size < 1)
    throw ArgumentError(str("DataLoader: expected a dataset with at least one item, got ", size));
  if (options.batch_size < 1)
    throw ArgumentError(str("DataLoader: expected batch_size >= 1, got ", options.batch_size));
  if (options.workers < 0 || options.workers > 256)
    throw ArgumentError(str("DataLoader: expected 0 <= workers <= 256, got ", options.workers));
  if (options.shuffle && options.sampler)
    throw ArgumentError("DataLoader: expected either shuffle or a sampler, got both");
  const std::int64_t ranks = options.sampler.ranks();
  if (ranks < 1) throw ArgumentError(str("DataLoader: expected a sampler of ranks, got ", ranks));
  if (options.batch_size > std::numeric_limits<std::int64_t>::max() / ranks)
    throw ArgumentError(str("DataLoader: expected batches of fewer than 2^63 items, got ", ranks,
                            " ranks of ", options.batch_size));
  if (!options.seed) options.seed = initial_seed();
  return options;
}

bool pins(const LoaderOptions& options) {
  if (!options.pin_memory || pinned_allocator() != nullptr) return options.pin_memory;
  warn(
      "DataLoader: expected a CUDA device for pin_memory, got none; the batches are not in pinned "
      "memory");
  return false;
}

void pin(const tree::Flat& batch) {
  for (const tree::Leaf& leaf : batch.leaves)
    if (Tensor& t = *leaf.tensor; t.defined()) t = t.pin_memory();
}

Sampler sampler_of(const LoaderOptions& options) {
  if (options.sampler) return options.sampler;
  if (options.shuffle) return RandomSampler{*options.seed};
  return SequentialSampler{};
}

std::int64_t batch_count(const LoaderOptions& options, const Sampler& sampler, std::int64_t size) {
  const std::int64_t items = sampler.count(size, options.batch_size);
  return items / options.batch_size +
         (!options.drop_last && items % options.batch_size != 0 ? 1 : 0);
}

EpochPlan plan_epoch(const LoaderOptions& options, const Sampler& sampler, std::int64_t size,
                     std::int64_t epoch, std::int64_t first) {
  EpochPlan plan;
  plan.indices = sampler.indices(size, epoch, options.batch_size);
  const std::int64_t count = sampler.count(size, options.batch_size);
  if (count != static_cast<std::int64_t>(plan.indices.size()))
    throw ArgumentError(str("DataLoader: expected ", count,
                            " indices from the sampler, as its count says, got ",
                            plan.indices.size()));
  check_indices("DataLoader", plan.indices, size);
  plan.batch_size = options.batch_size;
  plan.batches = batch_count(options, sampler, size);
  plan.epoch = epoch;
  plan.workers = options.workers;
  plan.first = std::min(first, plan.batches);
  return plan;
}

}  // namespace braid::data::detail
