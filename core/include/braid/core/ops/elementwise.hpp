#pragma once

/// \file All elementwise operations, except activations. Each header documents shapes, dtypes,
/// gradients and errors of its functions.
#include <braid/core/ops/binary.hpp>
#include <braid/core/ops/bitwise.hpp>
#include <braid/core/ops/compare.hpp>
#include <braid/core/ops/lerp.hpp>
#include <braid/core/ops/unary.hpp>
#include <braid/core/ops/where.hpp>
