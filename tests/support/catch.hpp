#pragma once
#include "support/check.hpp"
