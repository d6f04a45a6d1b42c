// ldmatrix and mma.sync: all 32 lanes of a warp together.
#include <cstring>

#include "ptx/decode.hpp"
#include "ptx/float.hpp"
#include "ptx/module.hpp"
#include "ptx/threads.hpp"

namespace ptx {

namespace {

/// What the elements of A and B are.
enum class Kind : int { tf32, bf16, f16 };

Next await_all(Thread& t, const Instruction&) {
  t.state = State::in_warp;
  t.mask = 0xffffffff;
  return Next::wait;
}

/// Appends the registers of {a, b, …} to the list.
void append(Line& line, std::size_t operand, std::size_t expected, std::vector<int>& list) {
  const std::string& x = line.operands.at(operand);
  if (x.front() != '{' || x.back() != '}') line.unknown();
  const std::vector<std::string> names = split(x.substr(1, x.size() - 2));
  if (names.size() != expected) line.unknown();
  for (const std::string& name : names) list.push_back(line.names.value(name));
}
void all_lanes(Line& line, MatrixOp op, std::vector<int> registers) {
  line.i.matrix = op;
  line.i.list = std::make_shared<const std::vector<int>>(std::move(registers));
  line.i.run = &await_all;
}

void load(Line& line) {
  for (const char* part : {"sync", "aligned", "m8n8", "shared", "b16"}) line.expect(part);
  const std::size_t count = std::size_t{1} << line.one_of({"x1", "x2", "x4"});
  line.i.kind = line.take("trans");
  line.count(2, 2);
  std::vector<int> to;
  append(line, 0, count, to);
  line.i.a = line.address(1, line.i.offset);
  all_lanes(line, MatrixOp::load, std::move(to));
}
void multiply(Line& line) {
  for (const char* part : {"sync", "aligned", "row", "col", "f32", "f32"}) line.expect(part);
  const auto kind = static_cast<Kind>(line.one_of({"tf32", "bf16", "f16"}));
  line.expect(kind == Kind::tf32 ? "tf32" : kind == Kind::bf16 ? "bf16" : "f16");
  line.expect(kind == Kind::tf32 ? "m16n8k8" : "m16n8k16");
  line.i.kind = static_cast<int>(kind);
  line.count(4, 4);
  std::vector<int> list;
  append(line, 0, 4, list), append(line, 1, 4, list), append(line, 2, 2, list);
  append(line, 3, 4, list);
  all_lanes(line, MatrixOp::multiply, std::move(list));
}

/// Row r of matrix m is at the address of lane 8 m + r. Lane l gets elements 2 (l % 4) and the next
/// of row l / 4, or of column l / 4 if the matrix is transposed.
void load_warp(const Instruction& i, Thread* lanes) {
  for (std::size_t m = 0; m < i.list->size(); ++m) {
    std::uint16_t element[8][8];
    for (std::size_t row = 0; row < 8; ++row) {
      const Thread& t = lanes[8 * m + row];
      std::memcpy(
          element[row],
          locate(t, Space::shared, t.r[i.a] + static_cast<std::uint64_t>(i.offset), 16, false), 16);
    }
    for (std::size_t l = 0; l < 32; ++l) {
      const std::size_t row = l / 4, column = l % 4 * 2;
      const std::uint32_t low = i.kind != 0 ? element[column][row] : element[row][column],
                          high = i.kind != 0 ? element[column + 1][row] : element[row][column + 1];
      lanes[l].r[(*i.list)[m]] = low | high << 16;
    }
  }
}

/// Element `half` of a register; a register of tf32 is one element, whose low 13 bits are ignored.
float element(Kind kind, std::uint64_t word, std::size_t half) {
  if (kind == Kind::tf32) return get<float>(word & 0xffffe000);
  const auto bits = static_cast<std::uint16_t>(word >> 16 * half);
  return kind == Kind::bf16 ? from_bfloat16(bits) : static_cast<float>(from_half(bits));
}

/// D[16, 8] = A[16, k] B[k, 8] + C, in the order of k. A register has `each` elements along k. The
/// registers of A are rows g and g + 8 at k = each t, then the same 4 each further on; those of B
/// columns g at both (g = lane / 4, t = lane % 4).
void multiply_warp(const Instruction& i, Thread* lanes) {
  const auto kind = static_cast<Kind>(i.kind);
  const std::size_t each = kind == Kind::tf32 ? 1 : 2, depth = 8 * each;
  const int* const d = i.list->data();
  const int *const a = d + 4, *const b = a + 4, *const c = b + 2;
  float left[16][16], right[16][8], sum[16][8];
  for (std::size_t l = 0; l < 32; ++l) {
    const std::size_t g = l / 4, t = l % 4;
    const std::uint64_t* const r = lanes[l].r;
    for (std::size_t half = 0; half < each; ++half) {
      for (std::size_t k = 0; k < 4; ++k)
        left[g + k % 2 * 8][each * t + half + k / 2 * 4 * each] = element(kind, r[a[k]], half);
      for (std::size_t k = 0; k < 2; ++k)
        right[each * t + half + k * 4 * each][g] = element(kind, r[b[k]], half);
    }
    for (std::size_t k = 0; k < 4; ++k) sum[g + k / 2 * 8][2 * t + k % 2] = get<float>(r[c[k]]);
  }
  for (std::size_t row = 0; row < 16; ++row)
    for (std::size_t column = 0; column < 8; ++column)
      for (std::size_t k = 0; k < depth; ++k) sum[row][column] += left[row][k] * right[k][column];
  for (std::size_t l = 0; l < 32; ++l)
    for (std::size_t k = 0; k < 4; ++k)
      lanes[l].r[d[k]] = put(sum[l / 4 + k / 2 * 8][2 * (l % 4) + k % 2]);
}

}  // namespace

void meet_all(const Instruction& i, Thread* first) {
  if (i.matrix == MatrixOp::load) load_warp(i, first);
  else multiply_warp(i, first);
}

const Decoders& matrix_decoders() {
  static const Decoders table{{"ldmatrix", load}, {"mma", multiply}};
  return table;
}

}  // namespace ptx
