#pragma once
#include <cstdlib>
#include <string>

namespace braid::test {

/// Sets or unsets BRAID_DATA, and restores it at the end of its lifetime.
class DataVariable {
 public:
  explicit DataVariable(const char* value) {
    if (const char* now = std::getenv("BRAID_DATA")) before_ = now, had_ = true;
    set(value);
  }
  ~DataVariable() { set(had_ ? before_.c_str() : nullptr); }

 private:
  static void set(const char* value) {
    if (value != nullptr) ::setenv("BRAID_DATA", value, 1);
    else ::unsetenv("BRAID_DATA");
  }
  std::string before_;
  bool had_ = false;
};

}  // namespace braid::test
