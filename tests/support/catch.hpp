#pragma once

// Catch2 2 and 3 behind one include; the tests use what both have.
#if defined(BRAID_CATCH2_V2)
#include <catch2/catch.hpp>
#else
#include <catch2/catch_all.hpp>
using Catch::Approx;
#endif
