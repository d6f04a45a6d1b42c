#pragma once
#include <cstdint>

#include <braid/core/tensor.hpp>

namespace braid {

/// Seeds the random factories and starts their stream anew. The default seed is 0.
void manual_seed(std::uint64_t seed);
/// The seed of manual_seed.
[[nodiscard]] std::uint64_t initial_seed() noexcept;
/// A stream number for one random operation; each call gives the next. Together with the seed and the element's index it decides the numbers (Philox4x32-10).
[[nodiscard]] std::uint64_t next_random_stream() noexcept;

/// Standard normal numbers. Types: floating point. The same bits on every device.
[[nodiscard]] Tensor randn(const Shape& shape, const TensorOptions& options = {});
/// Uniform in [0, 1). Types: floating point.
[[nodiscard]] Tensor rand(const Shape& shape, const TensorOptions& options = {});
/// Uniform in [low, high). Types: floating point.
[[nodiscard]] Tensor uniform(const Shape& shape, double low, double high, const TensorOptions& options = {});
/// Uniform integers in [low, high), int64 unless another type is asked for. Throws ArgumentError unless low < high.
[[nodiscard]] Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, const TensorOptions& options = {});
/// A random order of 0 … n-1 (Fisher-Yates of our own), int64.
[[nodiscard]] Tensor randperm(std::int64_t n, const TensorOptions& options = {});

}  // namespace braid
