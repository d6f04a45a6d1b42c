// Calls of the steps of recurrent layers. The bounds follow the chain of roundings: each σ and tanh
// is within 4 ULP (8 roundings), and the slopes of σ and tanh are at most 1.
#include <array>

#include <braid/core/kernel_args/rnn.hpp>

#include "kernels/calls.hpp"

namespace agreement {
namespace {

struct Cells {
  braid::RnnKind kind;
  std::int64_t batch, hidden, shift;
  bool with_lengths;
  [[nodiscard]] std::int64_t states() const { return batch * hidden; }
  [[nodiscard]] std::int64_t gates() const { return braid::gates_of(kind) * states(); }
  [[nodiscard]] Operand lengths() const {
    Numbers list;
    for (std::int64_t row = 0; row < batch; ++row) list.add(static_cast<double>(row * 5 % 7));
    return in(list, 0, always(DType::int64));
  }
  [[nodiscard]] Operand state(std::uint64_t seed, double reach = 2) const {
    return in(random(states(), seed, -reach, reach), shift);
  }
  [[nodiscard]] Operand set_state(std::uint64_t seed) const {
    return out(random(states(), seed), shift);
  }
  [[nodiscard]] Operand set_gates(std::uint64_t seed) const {
    return out(random(gates(), seed), shift);
  }
};
constexpr std::int64_t kStep = 3;  // the step that runs; sequences have 0 to 6 steps

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

}  // namespace

std::vector<Call> calls_of_rnn_cell(DType) {
  std::vector<Call> list;
  for (const Cells& c : all_cells()) {
    const bool lstm = c.kind == braid::RnnKind::lstm, gru = c.kind == braid::RnnKind::gru;
    list.push_back(
        {text("rnn cell", c),
         {c.set_gates(1), in(random(c.gates(), 2), c.shift), c.state(3), c.set_state(4), c.state(5),
          c.set_state(6), c.lengths()},
         [=](const Place& p) {
           p.table.rnn_cell({c.kind, p.t, c.batch, c.hidden, p[0], p[1], p[2], p[3], p[4], p[5],
                             c.with_lengths ? p.integers(6) : nullptr, kStep},
                            p.stream);
         },
         [=](DType t, const Values& v) {
           // Gates are at most 1 and come from sums of numbers up to 2. A state is f c + i g with
           // |c| <= 2.
           const double gate = rounding(t) * (8 + 6),
                        state = rounding(t) * (lstm ? 4 * 14 + 4 : 3 * 14 + 6);
           return Values{Numbers(v[0].size(), lstm || gru ? gate : 0), Numbers(v[3].size(), state),
                         Numbers(v[5].size(), lstm ? state : 0)};
         }});
  }
  return list;
}

std::vector<Call> calls_of_rnn_cell_backward(DType) {
  std::vector<Call> list;
  for (const Cells& c : all_cells())
    for (const bool with_dy : {true, false}) {
      const bool lstm = c.kind == braid::RnnKind::lstm, gru = c.kind == braid::RnnKind::gru;
      list.push_back(
          {text(with_dy ? "rnn cell backward" : "rnn cell backward without dy", c),
           {in(random(c.gates(), 1, 0, 1), c.shift), in(random(c.gates(), 2), c.shift), c.state(3),
            c.state(4, 1), c.state(5), c.state(6), c.state(7), c.set_state(8), c.set_state(9),
            c.set_gates(10), c.set_gates(11), c.lengths()},
           [=](const Place& p) {
             p.table.rnn_cell_backward(
                 {c.kind, p.t, c.batch, c.hidden, p[0], p[1], p[2], p[3], p[4], p[5],
                  with_dy ? p[6] : nullptr, p[7], p[8], p[9], gru ? p[10] : nullptr,
                  c.with_lengths ? p.integers(11) : nullptr, kStep},
                 p.stream);
           },
           [=](DType t, const Values& v) {
             // Since |dh + dy| <= 4 and |dc| <= 2, |dstate| <= 6. A gate's gradient is at most 12,
             // after about a dozen roundings and one tanh.
             const double bound = rounding(t) * 12 * (12 + 16);
             return Values{Numbers(v[7].size(), bound), Numbers(v[8].size(), lstm ? bound : 0),
                           Numbers(v[9].size(), bound), Numbers(v[10].size(), gru ? bound : 0)};
           }});
    }
  return list;
}

}  // namespace agreement
