#pragma once
#include <braid/core/ops/activation.hpp>  // the former name of this header is activations.hpp
