#include <utility>

#include "simt/runtime/state.hpp"
#include "simt/runtime/sticky.hpp"

namespace braid::simt {

bool sticky(cudaError_t code) noexcept { return ends_device(static_cast<int>(code)); }

namespace detail {

cudaError_t Runtime::count_call(const char* function) {
  const Lock lock(mutex);
  ++call_count;
  const auto of = calls_of.find(std::string_view(function));
  if (of != calls_of.end()) ++of->second;
  else calls_of.emplace(function, 1);
  reports_before = report_count;
  Injection& i = injection;
  if (i.k == 0 || (!i.function.empty() && i.function != function)) return cudaSuccess;
  ++i.seen;
  if (i.seen < i.k || (i.seen > i.k && !i.persistent)) return cudaSuccess;
  i.fired = true;
  failed_function = function;
  if (sticky(i.code)) poison(current_device, i.code);
  return i.code;
}

}  // namespace detail

void fail_call(std::uint64_t k, cudaError_t code, bool persistent, std::string function) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  r.injection = {k, 0, code, persistent, false, std::move(function)};
}

std::uint64_t calls() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.call_count;
}

std::uint64_t calls(std::string_view function) {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  const auto of = r.calls_of.find(function);
  return of == r.calls_of.end() ? 0 : of->second;
}

std::uint64_t legacy_operations() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.legacy_count;
}

bool failed_call() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.injection.fired;
}

std::string failed_function() {
  detail::Runtime& r = detail::runtime();
  const detail::Runtime::Lock lock(r.mutex);
  return r.failed_function;
}

}  // namespace braid::simt
