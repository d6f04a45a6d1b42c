#include <algorithm>
#include <utility>

#include "simt/runtime/state.hpp"
#include "simt/runtime/sticky.hpp"

namespace braid::simt {

bool sticky(cudaError_t code) noexcept { return ends_device(static_cast<int>(code)); }

namespace detail {

cudaError_t Injection::count_call(const char* function) {
  ++call_count;
  const auto of = calls_of.find(std::string_view(function));
  if (of != calls_of.end()) ++of->second;
  else calls_of.emplace(function, 1);
  FailingCall& i = failing;
  if (i.k == 0 || (!i.function.empty() && i.function != function)) return cudaSuccess;
  ++i.seen;
  if (i.seen < i.k || (i.seen > i.k && !i.persistent)) return cudaSuccess;
  i.fired = true;
  failed_function = function;
  return i.code;
}

StreamState* Injection::choose(std::vector<StreamState*>& ready) {
  const auto by_age = [](const StreamState* a, const StreamState* b) {
    return a->queue.front()->id < b->queue.front()->id;
  };
  StreamState* stream = nullptr;
  switch (order) {
    case StreamOrder::fifo: stream = *std::min_element(ready.begin(), ready.end(), by_age); break;
    case StreamOrder::reverse:
      stream = *std::max_element(ready.begin(), ready.end(), by_age);
      break;
    case StreamOrder::random:
      std::sort(ready.begin(), ready.end(), by_age);
      stream = ready[random() % ready.size()];
      break;
  }
  // operations of a stream run in order, so the sequence of streams determines the whole order
  schedule = (schedule ^ stream->queue.front()->slot) * 0x9e3779b97f4a7c15ULL;
  return stream;
}

void Injection::clear() {
  failing = {};
  call_count = 0;
  calls_of.clear();
}

cudaError_t Runtime::count_call(const char* function) {
  const Lock lock(mutex);
  reports_before = reports.count;
  const cudaError_t injected = injection.count_call(function);
  if (injected != cudaSuccess && sticky(injected)) reports.poison(current_device, injected);
  return injected;
}

}  // namespace detail

void fail_call(std::uint64_t k, cudaError_t code, bool persistent, std::string function) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  r.injection.failing = {k, 0, code, persistent, false, std::move(function)};
}

std::uint64_t calls() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.injection.call_count;
}

std::uint64_t calls(std::string_view function) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  const auto of = r.injection.calls_of.find(function);
  return of == r.injection.calls_of.end() ? 0 : of->second;
}

std::uint64_t legacy_operations() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.streams.legacy_count;
}

bool failed_call() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.injection.failing.fired;
}

std::string failed_function() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.injection.failed_function;
}

}  // namespace braid::simt
