// Every kernel of the table, by the CPU and by CUDA, in every type that it takes, with float64 as
// the arbiter; and what it refuses, it refuses alike.
#include <iostream>

#include "cuda_kernels/every_kernel.hpp"
#if defined(BRAID_CUDA_SIMT)
#include "simt/stats.hpp"
#endif

using namespace agreement;

namespace {

// One line a kernel. The size of the table says when one is missing; calls_of says what it is
// compared with.
// clang-format off
#define BRAID_KERNELS(X)                                                                          \
  X(unary) X(binary) X(where) X(activation) X(copy) X(fill) X(reduce) X(gemm) X(gemm_pair)        \
  X(softmax) X(softmax_backward) X(cross_entropy) X(cross_entropy_backward) X(mse)                \
  X(mse_backward) X(gather_rows) X(scatter_add_rows) X(random) X(gather) X(scatter) X(scan)       \
  X(sort) X(sgd) X(norm_rows) X(norm_rows_backward) X(norm_channels) X(norm_channels_backward)    \
  X(dropout) X(attention) X(attention_backward) X(rnn_cell) X(rnn_cell_backward) X(adam)          \
  X(rmsprop) X(adagrad) X(lion) X(conv) X(conv_backward_data) X(conv_backward_weight)             \
  X(max_pool) X(max_pool_backward) X(max_pool_pick) X(resample)
// clang-format on
#define BRAID_COUNT(name) +1
static_assert(sizeof(braid::KernelTable) == (0 BRAID_KERNELS(BRAID_COUNT)) * sizeof(void (*)()),
              "a kernel of the table is missing from BRAID_KERNELS");
#undef BRAID_COUNT

template <class Args> std::vector<Call<Args>> calls(Kernel<Args>, DType t) {
  return calls_of(Of<Args>{}, t);
}

/// Does the CPU's kernel take the call?
template <class Args> bool takes(Kernel<Args> kernel, const Call<Args>& call, DType t) {
  return answer(call, kernel, t, false).empty();
}

template <class Args> void agree(Tally& tally, Kernel<Args> kernel) {
  for (const DType t : kAll)
    for (const Call<Args>& call : calls(kernel, t))
      if (takes(kernel, call, t)) compare(tally, kernel, t, call);
}

/// Grids that the emulation has run.
#if defined(BRAID_CUDA_SIMT)
constexpr bool kCounted = true;
std::uint64_t grids() { return braid::simt::stats().grids; }
#else
constexpr bool kCounted = false;
std::uint64_t grids() { return 0; }
#endif

/// Entry by entry: both tables have it, each call is taken or refused by both, with one text, and
/// for every type it is a kernel that does the work.
template <class Args> void answer_alike(const char* name, Kernel<Args> kernel) {
  REQUIRE(((kernels().*kernel != nullptr) && (gpu().*kernel != nullptr)));
  int taken = 0;
  for (const DType t : kAll) {
    const std::uint64_t before = grids();
    bool work = false;
    for (const Call<Args>& call : calls(kernel, t)) {
      const std::string cpu = answer(call, kernel, t, false), cuda = answer(call, kernel, t, true);
      taken += cpu.empty();
      work = work || (cpu.empty() && !call.operands.empty() && !call.operands[0].numbers.empty());
      if (cpu != cuda)
        FAIL_CHECK(name << ": " << call.name << " " << braid::name_of(t) << ": the CPU says '"
                        << cpu << "', CUDA '" << cuda << "'");
    }
    if (kCounted && work && grids() == before)
      FAIL_CHECK(name << " " << braid::name_of(t) << ": no kernel was launched");
  }
  CHECK(taken > 0);
}

}  // namespace

TEST_CASE("every kernel of the CPU's table is in CUDA's, for the same types, with the same errors",
          "[.][every]") {
  NEEDS_GPU;
#define BRAID_ALIKE(name) answer_alike(#name, &braid::KernelTable::name);
  BRAID_KERNELS(BRAID_ALIKE)
#undef BRAID_ALIKE
}

TEST_CASE("every kernel agrees between the CPU and CUDA", "[.][every]") {
  NEEDS_GPU;
  Tally all;
  std::int64_t entries = 0;
#define BRAID_AGREE(name)                                                                   \
  {                                                                                         \
    Tally tally;                                                                            \
    INFO(#name);                                                                            \
    agree(tally, &braid::KernelTable::name);                                                \
    CHECK(tally.run > 0);                                                                   \
    ++entries, all.defined += tally.defined, all.run += tally.run;                          \
    if (tally.largest >= all.largest) all.largest = tally.largest, all.where = tally.where; \
  }
  BRAID_KERNELS(BRAID_AGREE)
#undef BRAID_AGREE
  CHECK(all.run == all.defined);
  CHECK(all.run > 10000);
  std::cout << "SHOWS: kernels, cpu against cuda by float64: " << entries << " entries, " << all.run
            << " of " << all.defined << " cells, largest error " << all.largest
            << " of R3's bound (" << all.where << ")" << std::endl;
}
