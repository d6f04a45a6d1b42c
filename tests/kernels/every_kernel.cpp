#include "kernels/every_kernel.hpp"

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <typeinfo>

#include "support/on_device.hpp"

namespace agreement {

namespace {

/// Copies the operands to buffers, shifted by `further` elements. The values are rounded to the
/// dtypes of `rounded_to`.
std::vector<Buffer> place(const std::vector<Operand>& operands, DType t, DType rounded_to,
                          std::int64_t further = 0) {
  std::vector<Buffer> list;
  for (const Operand& o : operands) {
    Buffer& b = list.emplace_back(o.of(t), o.numbers.size(), o.shift + further);
    for (std::int64_t i = 0; i < b.size(); ++i) b.put(i, rounded(o.of(rounded_to), o.numbers[i]));
  }
  return list;
}
void run_on_cpu(const Call& call, DType t, std::vector<Buffer>& operands) {
  Place at{cpu_kernels(), cpu_stream(), t, {}};
  for (Buffer& b : operands) at.data.push_back(b.host());
  call.run(at);
}
void run_on_device(const Call& call, DType t, std::vector<Buffer>& operands) {
  Place at{kernels(), stream(), t, {}};
  for (Buffer& b : operands) at.data.push_back(b.data());
  call.run(at);
  if (on_cuda()) at.stream.synchronize();
}

/// Checks that the bits are equal, and reports the first element that differs.
void check_same_bits(const Call& call, DType t, const std::vector<Buffer>& expected,
                     const std::vector<Buffer>& got, const std::string& where) {
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const std::vector<unsigned char> a = expected[k].bytes(), b = got[k].bytes();
    if (a == b) continue;
    const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
    const std::int64_t i = at / static_cast<std::int64_t>(braid::size_of(expected[k].dtype()));
    FAIL_CHECK(call.name << " " << braid::name_of(t) << ": " << where << ": operand " << k
                         << " element " << i << " is " << std::setprecision(17) << got[k][i]
                         << ", not " << expected[k][i]);
  }
}

void compare(Comparisons& counted, DType t, const Call& call) {
  std::vector<Buffer> cpu = place(call.operands, t, t), device = place(call.operands, t, t);
  const int threads = braid::num_threads();
  braid::set_num_threads(1);
  run_on_cpu(call, t, cpu);
  braid::set_num_threads(on_cuda() ? threads : 3);
  run_on_device(call, t, device);
  braid::set_num_threads(threads);
  ++counted.run;
  // 16-byte aligned elements are processed as vectors, others one by one, with the same bits.
  const bool aligned = std::none_of(call.operands.begin(), call.operands.end(),
                                    [](const Operand& o) { return o.shift > 0; });
  for (const std::int64_t further : aligned ? Sizes{1, 3} : Sizes{}) {
    std::vector<Buffer> elsewhere = place(call.operands, t, t, further);
    run_on_device(call, t, elsewhere);
    check_same_bits(call, t, device, elsewhere, braid::str(further, " elements further"));
  }
  // The order of the threads must not matter either; it would in a sum by atomics.
  std::vector<Buffer> reversed;
  if (in_other_order([&] {
        reversed = place(call.operands, t, t);
        run_on_device(call, t, reversed);
      }))
    check_same_bits(call, t, device, reversed, "in another order of threads");
  Values values, bounds;
  if (call.bound && braid::is_floating(t)) {
    std::vector<Buffer> wide = place(call.operands, DType::float64, t);
    run_on_cpu(call, DType::float64, wide);
    for (const Buffer& b : wide) {
      Numbers& list = values.emplace_back(b.size());
      for (std::int64_t i = 0; i < b.size(); ++i) list[i] = b[i];
    }
    bounds = call.bound(t, values);
  }
  std::size_t output = 0;
  for (std::size_t k = 0; k < cpu.size(); ++k) {
    const bool same_bits = cpu[k].bytes() == device[k].bytes(),
               bounded = !bounds.empty() && call.operands[k].output;
    if ((!bounded || !on_cuda()) && !same_bits)
      FAIL_CHECK(call.name << " " << braid::name_of(t) << ": the bits of operand " << k
                           << " are not the CPU's");
    if (!bounded) continue;
    const Numbers& bound = bounds.at(output++);
    for (std::int64_t i = 0; i < cpu[k].size(); ++i) {
      const double want = values[k][i];
      const auto units = [&](double got) {
        if (got == want || (std::isnan(got) && std::isnan(want))) return 0.0;
        return bound[i] > 0 && std::isfinite(got) ? std::fabs(got - want) / bound[i] : kInf;
      };
      const double of_cpu = units(cpu[k][i]), of_device = units(device[k][i]);
      if (of_device > counted.largest)
        counted.largest = of_device, counted.where = braid::str(call.name, " ", t);
      if (of_cpu > 1 || of_device > 1) {
        FAIL_CHECK(call.name << " " << braid::name_of(t) << ", operand " << k << " element " << i
                             << ": float64 " << want << ", device " << device[k][i] << " ("
                             << of_device << " of the bound), cpu " << cpu[k][i] << " (" << of_cpu
                             << ")");
        break;
      }
    }
  }
}

}  // namespace

std::string answer(const Call& call, DType t, bool on_device) {
  std::vector<Buffer> operands = place(call.operands, t, t);
  try {
    on_device ? run_on_device(call, t, operands) : run_on_cpu(call, t, operands);
  } catch (const braid::Error& e) {
    return std::string(typeid(e).name()) + ": " + e.what();
  }
  return "";
}

Comparisons agree(const char* name, CallsOf calls_of) {
  Comparisons counted;
  INFO(name);
  for (const DType t : kAll) {
    std::size_t number = 0;  // every part has the first call of each dtype
    for (const Call& call : calls_of(t)) {
      if (!answer(call, t, false).empty()) continue;
      ++counted.defined;
      if (number == 0 || braid::test::in_part(number)) compare(counted, t, call);
      ++number;
    }
  }
  CHECK(counted.run > 0);
  return counted;
}

void every_kernel_agrees() {
  Comparisons all;
  std::int64_t entries = 0;
  const auto add = [&](const Comparisons& counted) {
    ++entries, all.defined += counted.defined, all.run += counted.run;
    if (counted.largest >= all.largest) all.largest = counted.largest, all.where = counted.where;
  };
#define BRAID_KERNEL(name, Args) add(agree(#name, calls_of_##name));
#include <braid/core/internal/kernels.def>
  const bool sampled = std::getenv("BRAID_TEST_PART") != nullptr;
  CHECK((sampled || all.run == all.defined));
  CHECK(all.defined > 10000);
  std::cout << "SHOWS: kernels, cpu against " << (on_cuda() ? "cuda" : "more threads")
            << " by float64: " << entries << " entries, " << all.run << " of " << all.defined
            << " cells, largest error " << all.largest << " of R3's bound (" << all.where << ")"
            << std::endl;
}

}  // namespace agreement
