#include "cuda/errors.hpp"

#include <braid/core/error.hpp>

namespace braid::cuda {

void fail_dtype(const char* op, const char* expected, DType got) {
  throw DTypeError(str(op, ": expected ", expected, ", got ", got));
}

void fail_empty_reduction(const char* op) {
  throw ShapeError(str(op, ": expected at least one element to reduce, got none"));
}
void fail_size(const char* op, const char* expected, std::int64_t got) {
  throw ShapeError(str(op, ": expected ", expected, ", got ", got));
}

}  // namespace braid::cuda
