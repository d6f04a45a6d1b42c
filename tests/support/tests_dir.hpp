#pragma once

#include <string>

namespace braid::test {

/// Returns the folder of the tests' sources. It is a function so that only one object contains the
/// path and ccache can share the others between checkouts.
const std::string& tests_dir();

}  // namespace braid::test
