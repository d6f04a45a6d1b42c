#include "support/catch.hpp"

#include <braid/braid.hpp>

#include <string>

TEST_CASE("version() is the version of the project") {
  CHECK(std::string(braid::version()) == BRAID_TEST_VERSION);
}
