#include <braid/core/internal/linked_library.hpp>

#include <map>
#include <mutex>
#include <string>

namespace braid {
namespace {

struct LinkedLibraries {
  std::mutex mutex;
  std::map<std::string, FindFunction, std::less<>> by_name;
};

LinkedLibraries& linked() {
  static auto& all = *new LinkedLibraries;  // never destroyed: threads may use it until the end
  return all;
}

}  // namespace

void register_linked_library(std::string_view library, FindFunction find) {
  LinkedLibraries& all = linked();
  const std::lock_guard lock(all.mutex);
  all.by_name.insert_or_assign(std::string(library), find);
}

FindFunction find_linked_library(std::string_view library) {
  LinkedLibraries& all = linked();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_name.find(library);
  return found == all.by_name.end() ? nullptr : found->second;
}

}  // namespace braid
