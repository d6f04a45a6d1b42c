#pragma once
// One call of a kernel three times, by the CPU, by CUDA and by the CPU in float64, and the two
// results against the third. What they may differ by is R3 of the
// project's rules: exact rounding of + - * / and square roots, 4 ULP of elementary functions,
// (ceil(log2 n) + 2) u Σ|x| of sums, (k + 2) u Σ|a||b| of products;
// 16-bit results are rounded once more.
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <braid/core/kernel_args/loop.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"
#include "support/tensors.hpp"

namespace agreement {

using namespace kernel_test;
using Numbers = std::vector<double>;

/// The memory of one operand.
struct Operand {
  Numbers numbers;                             ///< what is there before, gaps included
  std::function<DType(DType)> type = nullptr;  ///< by the call's type; none: that type itself
  bool output = false;
  std::int64_t shift = 0;  ///< elements off an aligned address
  [[nodiscard]] DType of(DType t) const { return type ? type(t) : t; }
};
inline std::function<DType(DType)> always(DType t) {
  return [t](DType) { return t; };
}

/// A call: its operands, the arguments over their addresses, and the bound of each number of each
/// output, in the order of the operands. Where there is no bound, the outputs are those of the CPU,
/// bit for bit. A bound gets all operands after the float64 call, and the type.
template <class Args> struct Call {
  std::string name;
  std::vector<Operand> operands;
  std::function<Args(DType, const std::vector<void*>&)> args;
  std::function<std::vector<Numbers>(DType, const std::vector<Numbers>&)> bound;
};

/// What was compared.
struct Tally {
  std::int64_t defined = 0, run = 0;
  double largest = 0;  ///< error of CUDA in units of the bound
  std::string where;
};

/// Unit roundoff of the arithmetic of a type; float64 is compared with the CPU's float64, so both
/// may be off.
inline double rounding(DType t) { return t == DType::float64 ? 2 * 0x1p-53 : 0x1p-24; }
/// What is rounded exactly may differ by, y in float64.
inline double exactly(DType t, double y) { return t == DType::float64 ? 0 : 0.501 * ulp(t, y); }
/// The last rounding of a 16-bit result.
inline double last(DType t, double y) { return size_of(t) == 2 ? 0.501 * ulp(t, y) : 0; }

/// The operands in memory, as the CPU (or its float64 call) sees them.
inline std::vector<Buffer> place(const std::vector<Operand>& operands, DType t, DType rounded_to) {
  std::vector<Buffer> list;
  for (const Operand& o : operands) {
    Buffer b(o.of(t), static_cast<std::int64_t>(o.numbers.size()), o.shift);
    for (std::int64_t i = 0; i < b.size(); ++i)
      b.put(i, rounded(o.of(rounded_to), o.numbers[static_cast<std::size_t>(i)]));
    list.push_back(std::move(b));
  }
  return list;
}
inline std::vector<void*> addresses(std::vector<Buffer>& list) {
  std::vector<void*> all;
  for (Buffer& b : list) all.push_back(b.data());
  return all;
}

template <class Args> using Kernel = void (*braid::KernelTable::*)(const Args&, braid::Stream&);

/// The outputs of CUDA, by the operands `before`.
template <class Args>
void run_cuda(const Call<Args>& call, Kernel<Args> kernel, DType t, std::vector<Buffer>& operands) {
  std::vector<std::unique_ptr<Twin>> twins;
  std::vector<void*> data;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    twins.push_back(std::make_unique<Twin>(operands[i], call.operands[i].shift));
    data.push_back(twins.back()->data());
  }
  (gpu().*kernel)(call.args(t, data), gpu_stream());
  gpu_stream().synchronize();
  for (auto& twin : twins) twin->fetch();
}

template <class Args>
void compare(Tally& tally, Kernel<Args> kernel, DType t, const Call<Args>& call) {
  ++tally.defined;
  std::vector<Buffer> cpu = place(call.operands, t, t), cuda = place(call.operands, t, t);
  (kernels().*kernel)(call.args(t, addresses(cpu)), stream());
  run_cuda(call, kernel, t, cuda);
  ++tally.run;
  std::vector<Numbers> values, bounds;
  if (call.bound && braid::is_floating(t)) {
    std::vector<Buffer> wide = place(call.operands, DType::float64, t);
    (kernels().*kernel)(call.args(DType::float64, addresses(wide)), stream());
    for (const Buffer& b : wide) {
      values.emplace_back();
      for (std::int64_t i = 0; i < b.size(); ++i) values.back().push_back(b[i]);
    }
    bounds = call.bound(t, values);
  }
  std::size_t output = 0;
  for (std::size_t k = 0; k < cpu.size(); ++k) {
    if (bounds.empty() || !call.operands[k].output) {
      if (cpu[k].bytes() != cuda[k].bytes())
        FAIL_CHECK(call.name << " " << braid::name_of(t) << ": the bits of operand " << k
                             << " are not the CPU's");
      continue;
    }
    const Numbers& bound = bounds.at(output++);
    for (std::int64_t i = 0; i < cpu[k].size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double want = values[k][at];
      const auto units = [&](double got) {
        if (got == want || (std::isnan(got) && std::isnan(want))) return 0.0;
        return bound[at] > 0 && std::isfinite(got) ? std::fabs(got - want) / bound[at] : kInf;
      };
      const double of_cpu = units(cpu[k][i]), of_cuda = units(cuda[k][i]);
      if (of_cuda > tally.largest)
        tally.largest = of_cuda, tally.where = call.name + " " + std::string(braid::name_of(t));
      if (of_cpu > 1 || of_cuda > 1) {
        FAIL_CHECK(call.name << " " << braid::name_of(t) << ", operand " << k << " element " << i
                             << ": float64 " << want << ", cuda " << cuda[k][i] << " (" << of_cuda
                             << " of the bound), cpu " << cpu[k][i] << " (" << of_cpu << ")");
        break;
      }
    }
  }
}

/// How a kernel answers: nothing, or the type and text of its error.
template <class Args>
std::string answer(const Call<Args>& call, Kernel<Args> kernel, DType t, bool on_cuda) {
  std::vector<Buffer> operands = place(call.operands, t, t);
  try {
    if (on_cuda) run_cuda(call, kernel, t, operands);
    else (kernels().*kernel)(call.args(t, addresses(operands)), stream());
  } catch (const braid::Error& e) {
    return std::string(typeid(e).name()) + ": " + e.what();
  }
  return "";
}

// ---- operands

/// n numbers of the type: small integers of both signs, or fractions in [low, high).
inline Numbers random(std::int64_t n, std::uint64_t seed, double low = -2, double high = 2) {
  braid::test::Numbers source(seed);
  Numbers list;
  for (std::int64_t i = 0; i < n; ++i) list.push_back(source.uniform(low, high));
  return list;
}
inline Operand in(Numbers numbers, std::int64_t shift = 0,
                  std::function<DType(DType)> type = nullptr) {
  return {std::move(numbers), std::move(type), false, shift};
}
inline Operand out(Numbers numbers, std::int64_t shift = 0,
                   std::function<DType(DType)> type = nullptr) {
  return {std::move(numbers), std::move(type), true, shift};
}

/// A way through memory: sizes that break blocks and vectors, off an aligned address, with gaps,
/// transposed, repeated, empty. Operand 0 is the output.
struct Walk {
  std::string name;
  Loop loop;
  std::int64_t shift = 0;
};
inline std::vector<Walk> walks() {
  std::vector<Walk> list;
  for (const std::int64_t n : {0, 1, 31, 33, 127, 129, 1025})
    for (const std::int64_t shift : {0, 1})
      list.push_back({braid::str(n, " dense, offset ", shift), dense(n), shift});
  list.push_back({"33 x 31 transposed", strided({33, 31}, {{31, 1}, {1, 33}, {31, 1}, {1, 33}})});
  list.push_back(
      {"33 x 31, second transposed", strided({33, 31}, {{31, 1}, {31, 1}, {1, 33}, {31, 1}}), 1});
  list.push_back({"129 in steps of 2", strided({129}, {{1}, {2}, {2}, {3}})});
  list.push_back({"127 to steps of 2", strided({127}, {{2}, {1}, {1}, {1}}), 1});
  list.push_back({"5 x 33, row repeated", strided({5, 33}, {{33, 1}, {0, 1}, {33, 1}, {0, 1}})});
  list.push_back({"5 x 33, column repeated", strided({5, 33}, {{33, 1}, {33, 1}, {1, 0}, {1, 0}})});
  list.push_back({"3 x 7 x 11 permuted, rows with a gap",
                  strided({3, 7, 11}, {{84, 12, 1}, {1, 3, 21}, {77, 11, 1}, {1, 3, 21}}), 1});
  list.push_back({"3 x 0", strided({3, 0}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}})});
  return list;
}
inline Numbers for_operand(const Walk& w, int operand, std::uint64_t seed, double low = -2,
                           double high = 2) {
  return random(w.loop.n == 0 ? 0 : extent(w.loop, operand), seed, low, high);
}
/// Bounds of an output that a walk writes: f(position, result); what lies between must not change.
template <class F> Numbers along(const Walk& w, std::size_t memory, F f) {
  Numbers bound(memory, 0.0);
  for (std::int64_t i = 0; i < w.loop.n; ++i)
    bound[static_cast<std::size_t>(offset(w.loop, 0, i))] = f(i);
  return bound;
}

}  // namespace agreement
