#pragma once

// All of Braid. Only programs include this header: a module includes <braid/MODULE/name.hpp> of the modules it may use.
#include <braid/core/version.hpp>
