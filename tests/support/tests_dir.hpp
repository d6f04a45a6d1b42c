#pragma once

#include <string>

namespace braid::test {

/// The folder of the tests' sources. A function, so that no object but one has the path in it, and
/// ccache shares the others between checkouts.
const std::string& tests_dir();

}  // namespace braid::test
