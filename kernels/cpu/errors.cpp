#include "cpu/errors.hpp"

#include <braid/core/error.hpp>

namespace braid::cpu {

void fail_dtype(const char* op, const char* expected, DType got) {
  throw DTypeError(str(op, ": expected ", expected, ", got ", got));
}

void fail_division_by_zero(BinaryOp op) {
  throw ArgumentError(str(name_of_division(op), ": expected integer divisors other than 0, got 0"));
}

void fail_index(const char* op, const char* what, std::int64_t low, std::int64_t high,
                std::int64_t got, std::int64_t position) {
  throw IndexError(str(op, ": expected ", what, " in [", low, ", ", high, "), got ", got,
                       " at position ", position));
}

void fail_empty_reduction(const char* op) {
  throw ShapeError(str(op, ": expected at least one element to reduce, got none"));
}

}  // namespace braid::cpu
