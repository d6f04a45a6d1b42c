#include "process/collective_log.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace braid::parallel::process {
namespace {

std::mutex mutex;
std::map<int, CollectiveLog>& logs() {
  static std::map<int, CollectiveLog> of_ranks;  // with the mutex; ranks can be threads
  return of_ranks;
}

}  // namespace

void clear_collectives() noexcept {
  const std::lock_guard lock(mutex);
  logs().clear();
}

void log_collective(int rank, CollectiveSpan span) noexcept {
  const std::lock_guard lock(mutex);
  try {
    CollectiveLog& log = logs()[rank];
    if (log.spans.size() < kMostCollectives) log.spans.push_back(std::move(span));
    else ++log.dropped;
  } catch (...) {  // no memory: no span
  }
}

CollectiveLog take_collectives(int rank) {
  const std::lock_guard lock(mutex);
  return std::exchange(logs()[rank], {});
}

}  // namespace braid::parallel::process
