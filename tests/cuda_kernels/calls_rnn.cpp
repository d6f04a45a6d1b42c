// Calls of the steps of recurrent layers. A bound follows the chain of roundings: each σ and tanh
// is within 4 ULP (8 roundings), slopes of σ and tanh are at most 1.
#include <braid/core/kernel_args/rnn.hpp>

#include <memory>

#include "cuda_kernels/every_kernel.hpp"

namespace agreement {
namespace {

struct Cells {
  braid::RnnKind kind;
  std::int64_t batch, hidden, shift;
  bool with_lengths;
  [[nodiscard]] std::int64_t states() const { return batch * hidden; }
  [[nodiscard]] std::int64_t gates() const { return braid::gates_of(kind) * states(); }
  [[nodiscard]] Numbers lengths() const {
    Numbers list;
    for (std::int64_t row = 0; row < batch; ++row) list.push_back(static_cast<double>(row * 5 % 7));
    return list;
  }
};
constexpr std::int64_t kStep = 3;  // of sequences of 0 to 6 steps

std::vector<Cells> all_cells() {
  std::vector<Cells> list;
  for (const braid::RnnKind kind :
       {braid::RnnKind::tanh, braid::RnnKind::relu, braid::RnnKind::lstm, braid::RnnKind::gru})
    for (const auto& [batch, hidden, shift] : std::vector<std::array<std::int64_t, 3>>{
             {1, 1, 0}, {33, 31, 1}, {7, 129, 0}, {2, 1025, 1}, {0, 5, 0}, {3, 0, 0}})
      for (const bool with_lengths : {false, true})
        list.push_back({kind, batch, hidden, shift, with_lengths});
  return list;
}

std::string text(const char* what, const Cells& c) {
  return braid::str(what, ", kind ", static_cast<int>(c.kind), ", ", c.batch, " x ", c.hidden,
                    ", offset ", c.shift, c.with_lengths ? ", lengths" : "");
}
const std::int64_t* lengths_at(const Cells& c, void* p) {
  return c.with_lengths ? static_cast<const std::int64_t*>(p) : nullptr;
}

}  // namespace

std::vector<Call<braid::RnnCellArgs>> calls_of(Of<braid::RnnCellArgs>, DType) {
  std::vector<Call<braid::RnnCellArgs>> list;
  for (const Cells& c : all_cells()) {
    const bool lstm = c.kind == braid::RnnKind::lstm;
    list.push_back({text("rnn cell", c),
                    {out(random(c.gates(), 1), c.shift), in(random(c.gates(), 2), c.shift),
                     in(random(c.states(), 3), c.shift), out(random(c.states(), 4), c.shift),
                     in(random(c.states(), 5), c.shift), out(random(c.states(), 6), c.shift),
                     in(c.lengths(), 0, always(DType::int64))},
                    [=](DType t, const std::vector<void*>& at) {
                      return braid::RnnCellArgs{c.kind,
                                                t,
                                                c.batch,
                                                c.hidden,
                                                at[0],
                                                at[1],
                                                at[2],
                                                at[3],
                                                at[4],
                                                at[5],
                                                lengths_at(c, at[6]),
                                                kStep};
                    },
                    [=](DType t, const std::vector<Numbers>& v) {
                      // Gates are at most 1 and come from sums of numbers up to 2; a state is f c +
                      // i g with
                      // |c| <= 2.
                      const double gate = rounding(t) * (8 + 6),
                                   state = rounding(t) * (lstm ? 4 * 14 + 4 : 3 * 14 + 6);
                      Numbers gates(v[0].size(),
                                    c.kind == braid::RnnKind::lstm || c.kind == braid::RnnKind::gru
                                        ? gate
                                        : 0),
                          h(v[3].size(), state), cells(v[5].size(), lstm ? state : 0);
                      return std::vector<Numbers>{gates, h, cells};
                    }});
  }
  return list;
}

std::vector<Call<braid::RnnCellBackwardArgs>> calls_of(Of<braid::RnnCellBackwardArgs>, DType) {
  std::vector<Call<braid::RnnCellBackwardArgs>> list;
  for (const Cells& c : all_cells())
    for (const bool with_dy : {true, false}) {
      const bool lstm = c.kind == braid::RnnKind::lstm, gru = c.kind == braid::RnnKind::gru;
      list.push_back(
          {text(with_dy ? "rnn cell backward" : "rnn cell backward without dy", c),
           {in(random(c.gates(), 1, 0, 1), c.shift), in(random(c.gates(), 2), c.shift),
            in(random(c.states(), 3), c.shift), in(random(c.states(), 4, -1, 1), c.shift),
            in(random(c.states(), 5), c.shift), in(random(c.states(), 6), c.shift),
            in(random(c.states(), 7), c.shift), out(random(c.states(), 8), c.shift),
            out(random(c.states(), 9), c.shift), out(random(c.gates(), 10), c.shift),
            out(random(c.gates(), 11), c.shift), in(c.lengths(), 0, always(DType::int64))},
           [=](DType t, const std::vector<void*>& at) {
             return braid::RnnCellBackwardArgs{c.kind,
                                               t,
                                               c.batch,
                                               c.hidden,
                                               at[0],
                                               at[1],
                                               at[2],
                                               at[3],
                                               at[4],
                                               at[5],
                                               with_dy ? at[6] : nullptr,
                                               at[7],
                                               at[8],
                                               at[9],
                                               gru ? at[10] : nullptr,
                                               lengths_at(c, at[11]),
                                               kStep};
           },
           [=](DType t, const std::vector<Numbers>& v) {
             // |dh + dy| <= 4, |dc| <= 2, so |dstate| <= 6; a gate's gradient is at most
             // 12, after about a dozen roundings and one tanh.
             const double bound = rounding(t) * 12 * (12 + 16);
             Numbers dh(v[7].size(), bound), dc(v[8].size(), lstm ? bound : 0),
                 dgates(v[9].size(), bound), dhidden(v[10].size(), gru ? bound : 0);
             return std::vector<Numbers>{dh, dc, dgates, dhidden};
           }});
    }
  return list;
}

}  // namespace agreement
