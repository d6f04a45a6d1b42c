#include "simt/trace.hpp"

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <utility>

#include "simt/scheduler.hpp"

namespace braid::simt {

namespace {
std::mutex mutex;
std::function<void(const std::string&)>& handler() {
  static std::function<void(const std::string&)> f;
  return f;
}
}  // namespace

std::function<void(const std::string&)> set_trace_handler(
    std::function<void(const std::string&)> f) {
  const std::lock_guard lock(mutex);
  return std::exchange(handler(), std::move(f));
}

void trace(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const int index = detail::lane_id() | 0;
  const Scheduler* s = Scheduler::running();
  const std::string line = str(
      "[b", blockIdx.x, ",", blockIdx.y, ",", blockIdx.z, " t", threadIdx.x, ",", threadIdx.y, ",",
      threadIdx.z, " w", const_cast<Scheduler*>(s)->current().index / 32, " l", index, "] ", text);
  const std::lock_guard lock(mutex);
  if (handler()) handler()(line);
  else std::printf("%s\n", line.c_str());
}

}  // namespace braid::simt
