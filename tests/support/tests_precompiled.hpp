#pragma once

// Headers that most tests include: see braid_precompile.
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include <braid/braid.hpp>

#include "support/errors.hpp"
