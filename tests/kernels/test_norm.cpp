// The normalisations, dropout and attention in every instruction set: float32 and 16 bits against
// float64 within the bounds of cuda_kernels/calls_norm.cpp, and the same bits for every number of
// threads. Their formulas are held against plain loops by the table of ops (tests/core).
#include "cuda_kernels/every_kernel.hpp"

using namespace agreement;

namespace {

/// The outputs by the CPU's kernel; `rounded_to`: the type whose numbers the operands are.
template <class Args>
std::vector<Buffer> run(const Call<Args>& call, Kernel<Args> kernel, DType t, DType rounded_to) {
  std::vector<Buffer> operands = place(call.operands, t, rounded_to);
  (kernels().*kernel)(call.args(t, addresses(operands)), stream());
  return operands;
}

template <class Args> void check(Kernel<Args> kernel) {
  const int before = braid::num_threads();
  for (const DType t : kFloats)
    for (const Call<Args>& call : calls_of(Of<Args>{}, t)) {
      INFO(call.name << " " << braid::name_of(t));
      braid::set_num_threads(1);
      const std::vector<Buffer> once = run(call, kernel, t, t),
                                wide = run(call, kernel, DType::float64, t);
      braid::set_num_threads(3);
      const std::vector<Buffer> again = run(call, kernel, t, t);
      std::vector<Numbers> values;
      for (const Buffer& b : wide) {
        values.emplace_back();
        for (std::int64_t i = 0; i < b.size(); ++i) values.back().push_back(b[i]);
      }
      const std::vector<Numbers> bounds =
          call.bound ? call.bound(t, values) : std::vector<Numbers>();
      std::size_t output = 0;
      std::int64_t wrong = 0;
      for (std::size_t k = 0; k < once.size(); ++k) {
        CHECK(once[k].bytes() == again[k].bytes());
        if (!call.operands[k].output || bounds.empty()) continue;
        const Numbers& bound = bounds.at(output++);
        for (std::int64_t i = 0; i < once[k].size(); ++i) {
          const auto at = static_cast<std::size_t>(i);
          const bool same = once[k][i] == values[k][at];  // infinities too: the logarithm of no sum
          wrong += !(same || std::fabs(once[k][i] - values[k][at]) <= bound[at]);
        }
      }
      CHECK(wrong == 0);
    }
  braid::set_num_threads(before);
}

}  // namespace

TEST_CASE("normalisations: every dtype, shape and alignment", "[kernels][norm]") {
  check(&braid::KernelTable::norm_rows);
  check(&braid::KernelTable::norm_rows_backward);
  check(&braid::KernelTable::norm_channels);
  check(&braid::KernelTable::norm_channels_backward);
}

TEST_CASE("dropout: every dtype, shape and alignment", "[kernels][dropout]") {
  check(&braid::KernelTable::dropout);
}

TEST_CASE("attention: every dtype, shape, mask and layout", "[kernels][attention]") {
  check(&braid::KernelTable::attention);
  check(&braid::KernelTable::attention_backward);
}
