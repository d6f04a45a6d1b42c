#pragma once
// Collects the library's warnings while a test runs.
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/error.hpp>

namespace braid::test {

/// Stores the texts of all warnings during its lifetime.
struct Warnings {
  std::vector<std::string> texts;
  std::mutex mutex;
  std::function<void(std::string_view)> old = set_warning_handler([this](std::string_view text) {
    const std::lock_guard lock(mutex);
    texts.emplace_back(text);
  });
  Warnings() = default;
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  ~Warnings() { set_warning_handler(old); }
};

}  // namespace braid::test
