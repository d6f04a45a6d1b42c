#pragma once
// The calls with which every kernel of the table is compared between devices, with float64 as the
// reference. The bounds: exact rounding of + - * / and square roots, 4 ULP for elementary
// functions, (ceil(log2 n) + 2) u Σ|x| for sums, (k + 2) u Σ|a||b| for products. 16-bit results
// are rounded once more.
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
using Values = std::vector<Numbers>;  // of all operands, or of the outputs only

using TypeOf = std::function<DType(DType)>;
/// One operand of a call: its memory before the call.
struct Operand {
  Numbers numbers;  ///< the initial contents, gaps included
  TypeOf type;      ///< its dtype, given the call's; null: the call's dtype
  bool output;
  std::int64_t shift;  ///< offset from an aligned address, in elements
  [[nodiscard]] DType of(DType t) const { return type ? type(t) : t; }
};
TypeOf always(DType t);
/// The dtype of statistics, which are never 16-bit: float64 for float64, else float32.
DType statistics(DType t);
Operand in(Numbers numbers, std::int64_t shift = 0, TypeOf type = nullptr);
Operand out(Numbers numbers, std::int64_t shift = 0, TypeOf type = nullptr);
/// Returns n random numbers in [low, high).
Numbers random(std::int64_t n, std::uint64_t seed, double low = -2, double high = 2);

/// The device, dtype and memory of a call.
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

/// Returns the bound of each element of each output, in the order of the operands, from the dtype
/// and all operands after the float64 call.
using Bound = std::function<Values(DType, const Values&)>;
/// A kernel call. Without a bound the outputs must be the same bits on all devices.
struct Call {
  std::string name;
  std::vector<Operand> operands;
  std::function<void(const Place&)> run;
  Bound bound = nullptr;
};
/// The bound for one output: f(dtype, operands, element).
using BoundOfOne = std::function<double(DType, const Values&, std::int64_t)>;
Bound each(BoundOfOne f);

/// Unit roundoff of a dtype's arithmetic. For float64 it is doubled: the reference is the CPU's
/// float64, so both results may be off.
double rounding(DType t);
/// Bound for an exactly rounded result; y is the float64 result.
double exactly(DType t, double y);
/// Bound for a result within 4 ULP.
double four_ulp(DType t, double y);
/// Bound for the final rounding of a 16-bit result.
double last(DType t, double y);

/// The bound of sums of products: (terms + 3) roundings of Σ |product|.
struct Sums {
  Numbers size, terms;
  explicit Sums(std::int64_t n) : size(n), terms(n) {}
  void add(std::int64_t at, double product) { size[at] += std::fabs(product), terms[at] += 1; }
  [[nodiscard]] Numbers bound(DType t) const {
    Numbers list(size.size());
    for (std::int64_t i = 0; i < list.size(); ++i) list[i] = (terms[i] + 3) * rounding(t) * size[i];
    return list;
  }
};

/// A loop over memory. The list has sizes that are no multiple of blocks or vectors, unaligned
/// addresses, gaps, transposed, repeated and empty loops. Operand 0 is the output.
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
/// The bound f(dtype, operands, position) for the elements that a walk writes. The elements between
/// them must not change.
Bound along(const Walk& w, BoundOfOne f);

/// Returns the range of random numbers: small for integers, so that they fit and some values
/// repeat.
double reach(DType t);

/// The calls of each kernel for a dtype: calls_of_unary(t). A kernel without calls does not link.
#define BRAID_KERNEL(name, Args) std::vector<Call> calls_of_##name(DType t);
#include <braid/core/internal/kernels.def>

}  // namespace agreement
