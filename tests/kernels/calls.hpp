#pragma once
// The calls by which every kernel of the table is compared between devices, with float64 as the
// arbiter. What they may differ by is R3 of the project's rules: exact rounding of + - * / and
// square roots, 4 ULP of elementary functions, (ceil(log2 n) + 2) u Σ|x| of sums, (k + 2) u Σ|a||b|
// of products; 16-bit results are rounded once more.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel_support.hpp"

namespace agreement {

using namespace kernel_test;

class Numbers {
 public:
  Numbers() = default;
  Numbers(std::initializer_list<double> list) : list_(list) {}
  explicit Numbers(std::int64_t n, double x = 0) : list_(static_cast<std::size_t>(n), x) {}
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(list_.size()); }
  double& operator[](std::int64_t i) { return list_[static_cast<std::size_t>(i)]; }
  double operator[](std::int64_t i) const { return list_[static_cast<std::size_t>(i)]; }
  void add(double x) { list_.push_back(x); }

 private:
  std::vector<double> list_;
};
using Values = std::vector<Numbers>;  // of all operands, or of the outputs

using TypeOf = std::function<DType(DType)>;
/// The memory of one operand.
struct Operand {
  Numbers numbers;  ///< what is there before, gaps included
  TypeOf type;      ///< by the call's type; none: that type itself
  bool output;
  std::int64_t shift;  ///< elements off an aligned address
  [[nodiscard]] DType of(DType t) const { return type ? type(t) : t; }
};
TypeOf always(DType t);
/// What is never 16 bits: float64 beside float64, else float32.
DType statistics(DType t);
Operand in(Numbers numbers, std::int64_t shift = 0, TypeOf type = nullptr);
Operand out(Numbers numbers, std::int64_t shift = 0, TypeOf type = nullptr);
/// n fractions in [low, high).
Numbers random(std::int64_t n, std::uint64_t seed, double low = -2, double high = 2);

/// Where a call runs, in which type, on which memory.
struct Place {
  const braid::KernelTable& table;
  braid::Stream& stream;
  DType t;
  std::vector<void*> data;
  void* operator[](std::size_t i) const { return data[i]; }
  [[nodiscard]] std::int64_t* integers(std::size_t i) const {
    return static_cast<std::int64_t*>(data[i]);
  }
};

/// The bound of each number of each output, in the order of the operands, by the type and all
/// operands after the float64 call.
using Bound = std::function<Values(DType, const Values&)>;
/// Without a bound the outputs are the same on all devices, bit for bit.
struct Call {
  std::string name;
  std::vector<Operand> operands;
  std::function<void(const Place&)> run;
  Bound bound = nullptr;
};
/// Of one output: f(type, operands, element).
using BoundOfOne = std::function<double(DType, const Values&, std::int64_t)>;
Bound each(BoundOfOne f);

/// Unit roundoff of the arithmetic of a type; float64 is compared with the CPU's float64, so both
/// may be off.
double rounding(DType t);
/// What is rounded exactly may differ by, y in float64.
double exactly(DType t, double y);
/// What is within 4 ULP.
double four_ulp(DType t, double y);
/// The last rounding of a 16-bit result.
double last(DType t, double y);

/// A way through memory: sizes that break blocks and vectors, off an aligned address, with gaps,
/// transposed, repeated, empty. Operand 0 is the output.
struct Walk {
  std::string name;
  Loop loop;
  std::int64_t shift = 0;
  [[nodiscard]] Numbers numbers(int operand, std::uint64_t seed, double low = -2,
                                double high = 2) const;
  [[nodiscard]] Operand result(TypeOf type = nullptr) const;
  [[nodiscard]] Operand operand(int k, double low, double high) const;
};
const std::vector<Walk>& walks();
/// Of the elements that a walk writes: f(type, operands, position); what lies between must not
/// change.
Bound along(const Walk& w, BoundOfOne f);

/// The calls of each kernel for a type: calls_of_unary(t). A kernel without them does not link.
#define BRAID_KERNEL(name, Args) std::vector<Call> calls_of_##name(DType t);
#include <braid/core/kernels.def>

}  // namespace agreement
