#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/core/tensor.hpp>
#include <braid/data/dataset.hpp>

// Tokens as tensors, for the vocabularies.
namespace braid::data::detail {

/// Returns the ids as int64 [ids], in host memory.
inline Tensor as_tensor(const std::vector<std::int64_t>& ids) {
  Tensor tokens = make_tensor({static_cast<std::int64_t>(ids.size())}, DType::int64, Device());
  std::copy(ids.begin(), ids.end(), tokens.data<std::int64_t>());
  return tokens;
}

/// Returns the tokens in host memory. Throws IndexError unless each is in [0, size).
inline std::vector<std::int64_t> checked_tokens(const char* op, const Tensor& tokens,
                                                std::int64_t size) {
  if (tokens.dtype() != DType::int64)
    throw DTypeError(str(op, ": expected tokens of int64, got ", tokens.dtype()));
  std::vector<std::int64_t> ids = tokens.to_vector<std::int64_t>();
  for (const std::int64_t id : ids) check_index(op, id, size);
  return ids;
}

}  // namespace braid::data::detail
