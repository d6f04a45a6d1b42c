#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace braid::nn::detail {

struct ForwardHook;
using ForwardHooks = std::vector<std::shared_ptr<const ForwardHook>>;

/// What the library keeps in a module: its path in the model, and its hooks. An assignment leaves
/// the path as it is, because the module stays where it is. A copy has a path only as a replica.
class ModuleRecord {
 public:
  ModuleRecord() noexcept = default;
  ModuleRecord(const ModuleRecord& other) noexcept;
  ModuleRecord(ModuleRecord&& other) noexcept;
  ModuleRecord& operator=(const ModuleRecord& other) noexcept;
  ModuleRecord& operator=(ModuleRecord&& other) noexcept;
  ~ModuleRecord();

  std::atomic<const std::string*> path{nullptr};  ///< set by tree::set_paths
  std::shared_ptr<const ForwardHooks> hooks;      ///< never changed: a new hook makes a new list
};

}  // namespace braid::nn::detail
