#include "support/tests_dir.hpp"

namespace braid::test {

const std::string& tests_dir() {
  static const std::string folder = BRAID_TESTS_DIR;
  return folder;
}

}  // namespace braid::test
