#include "primitives/ordered_prints.hpp"

#include <atomic>
#include <mutex>
#include <utility>

#include <braid/core/internal/environment.hpp>
#include <braid/core/print.hpp>
#include <braid/parallel/print_order.hpp>

namespace braid::parallel {
namespace {

constexpr int kUnset = -1;
std::atomic<int> chosen{kUnset};

PrintOrder from_environment() {
  return choice_from_environment("BRAID_PRINT_ORDER", {"thread", "replica"}) == 0
             ? PrintOrder::thread
             : PrintOrder::replica;
}

}  // namespace

PrintOrder print_order() {
  int order = chosen.load(std::memory_order_relaxed);
  if (order != kUnset) return static_cast<PrintOrder>(order);
  const PrintOrder first = from_environment();
  // An order that was set meanwhile takes precedence.
  return chosen.compare_exchange_strong(order, static_cast<int>(first))
             ? first
             : static_cast<PrintOrder>(order);
}

void set_print_order(PrintOrder order) { chosen = static_cast<int>(order); }

void OrderedPrints::end(std::size_t replica) noexcept {
  const std::lock_guard lock(mutex_);
  ended_[replica] = true;
  for (; next_ < ended_.size() && ended_[next_]; ++next_)
    if (!texts_[next_].empty()) braid::detail::print_line(std::move(texts_[next_]));
}

}  // namespace braid::parallel
