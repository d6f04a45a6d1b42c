#include "process/call.hpp"

#include <cmath>
#include <mutex>

#include <braid/core/error.hpp>

namespace braid::parallel {

namespace process {

const char* name_of(CallKind kind) noexcept {
  constexpr const char* kNames[] = {"broadcast",      "reduce",     "all_reduce",    "all_gather",
                                    "reduce_scatter", "all_to_all", "barrier",       "split",
                                    "send",           "recv",       "start_function"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(ReduceOp op) noexcept {
  constexpr const char* kNames[] = {"sum", "mean", "product", "min", "max"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string bytes_text(std::size_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  const double rounded = value < 10 && unit > 0 ? std::round(value * 10) / 10 : std::round(value);
  return bytes == 1 ? std::string("1 byte") : str(rounded, " ", kUnits[unit]);
}

std::string ranks_text(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) text += ", ";
    if (last >= i + 3) {
      text += str(ranks[i], " to ", ranks[last]);
      i = last;
    } else {
      text += std::to_string(ranks[i]);
    }
  }
  return text;
}

std::string seconds_text(double seconds) {
  return str(seconds < 100 ? std::round(seconds * 10) / 10 : std::round(seconds), " s");
}

std::string Call::text() const {
  const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype);
  std::string inside = name;
  if (kind != CallKind::barrier && kind != CallKind::split && kind != CallKind::function) {
    if (!inside.empty()) inside += ", ";
    inside += bytes_text(bytes);
    if (kind == CallKind::send) inside += str(" to rank ", peer);
    if (kind == CallKind::recv) inside += str(" from rank ", peer);
  }
  return inside.empty() ? name_of(kind) : str(name_of(kind), "(", inside, ")");
}

}  // namespace process

void Work::State::complete(std::exception_ptr failure) noexcept {
  {
    const std::lock_guard lock(mutex);
    if (done) return;
    done = true;
    error = std::move(failure);
  }
  changed.notify_all();
}

Work::Work(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

bool Work::is_completed() const noexcept {
  if (!state_) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

void Work::wait() const {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  if (!state_->done && state_->worker == std::this_thread::get_id())
    throw ArgumentError(
        "Work::wait: expected another thread than the communicator's own, which would wait for "
        "itself, got a call from a started function");
  state_->changed.wait(lock, [&] { return state_->done; });
  if (state_->error) std::rethrow_exception(state_->error);
}

}  // namespace braid::parallel
