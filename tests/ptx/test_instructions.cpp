// Compares each instruction with its definition in the PTX manual.
#include <cmath>
#include <limits>

#include "ptx/small_kernel.hpp"

using namespace ptx_test;

namespace {

/// `text` puts its result into %d (or %p1). Its inputs are a, b and c.
struct Row {
  const char* text;
  std::vector<std::uint64_t> inputs;
  std::uint64_t expected;
};
void check(const std::vector<Row>& rows, unsigned width) {
  for (const Row& row : rows) {
    INFO(row.text);
    const std::uint64_t got = results(kernel(std::string(row.text) + "\nst.global.u64 [%out], %d;"),
                                      threads(1), row.inputs)[0];
    const std::uint64_t mask = width == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << width) - 1;
    const std::uint64_t seen = got & mask, expected = row.expected & mask;
    CHECK(seen == expected);
  }
}
std::uint64_t signs(std::int64_t x) { return static_cast<std::uint64_t>(x); }
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = 1e-40f;  // subnormal
constexpr std::uint64_t kOneNaN = 0x7fffffff;

}  // namespace

TEST_CASE("ptx: integers of 32 bits", "[ptx]") {
  check({{"add.s32 %d, %a, %b;", {0x7fffffff, 1}, 0x80000000},
         {"add.cc.u32 %d, %a, %b; addc.u32 %d, 0, 0;", {0xffffffff, 1}, 1},
         {"add.cc.u32 %d, %a, %b; addc.cc.u32 %d, %c, 0; addc.u32 %d, 5, 5;",
          {0xffffffff, 1, 0xffffffff},
          11},
         {"sub.s32 %d, %a, %b;", {3, 5}, signs(-2)},
         {"sub.cc.u32 %d, %a, %b; subc.u32 %d, 9, 0;", {3, 5}, 8},
         {"sub.cc.u32 %d, %a, %b; subc.cc.u32 %d, 0, 0; subc.u32 %d, 9, 0;", {3, 5}, 8},
         {"mul.lo.s32 %d, %a, %b;", {0x10001, 0x10001}, 0x20001},
         {"mul.hi.u32 %d, %a, %b;", {0x80000000, 6}, 3},
         {"mul.hi.s32 %d, %a, %b;", {signs(-1), 2}, signs(-1)},
         {"mul.wide.u16 %d, %a, %b;", {0xffff, 0xffff}, 0xfffe0001},
         {"mul.wide.s16 %d, %a, %b;", {0xffff, 3}, signs(-3)},
         {"mad.lo.s32 %d, %a, %b, %c;", {7, 6, signs(-2)}, 40},
         {"mad.hi.u32 %d, %a, %b, %c;", {0x80000000, 6, 4}, 7},
         {"mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.u32 %d, %a, %b, 7;", {0x80000000, 2, 1}, 8},
         {"mad.lo.cc.u32 %d, %a, %b, %c; addc.u32 %d, 0, 0;", {0xffffffff, 1, 1}, 1},
         {"mad.lo.cc.u32 %d, %a, %b, %c; madc.lo.cc.u32 %d, 0, 0, %a; addc.u32 %d, 0, 0;",
          {0xffffffff, 1, 1},
          1},
         {"mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.cc.u32 %d, 0, 0, %a; addc.u32 %d, 0, 0;",
          {0xffffffff, 1, 1},
          1},
         {"div.s32 %d, %a, %b;", {signs(-7), 2}, signs(-3)},
         {"div.u32 %d, %a, %b;", {0xfffffff9, 2}, 0x7ffffffc},
         {"rem.s32 %d, %a, %b;", {signs(-7), 2}, signs(-1)},
         {"rem.u32 %d, %a, %b;", {7, 4}, 3},
         {"min.s32 %d, %a, %b;", {signs(-1), 1}, signs(-1)},
         {"min.u32 %d, %a, %b;", {0xffffffff, 1}, 1},
         {"max.s32 %d, %a, %b;", {signs(-1), 1}, 1},
         {"neg.s32 %d, %a;", {5}, signs(-5)},
         {"abs.s32 %d, %a;", {signs(-5)}, 5},
         {"and.b32 %d, %a, %b;", {12, 10}, 8},
         {"or.b32 %d, %a, %b;", {12, 10}, 14},
         {"xor.b32 %d, %a, %b;", {12, 10}, 6},
         {"not.b32 %d, %a;", {0xf0f0f0f0}, 0x0f0f0f0f},
         {"shl.b32 %d, %a, %b;", {3, 31}, 0x80000000},
         {"shl.b32 %d, %a, %b;", {3, 32}, 0},
         {"shr.u32 %d, %a, %b;", {0x80000000, 31}, 1},
         {"shr.u32 %d, %a, %b;", {0x80000000, 32}, 0},
         {"shr.s32 %d, %a, %b;", {0x80000000, 4}, 0xf8000000},
         {"shr.s32 %d, %a, %b;", {0x80000000, 99}, 0xffffffff},
         {"selp.b32 %d, %a, %b, 1;", {4, 5}, 4},
         {"selp.b32 %d, %a, %b, 0;", {4, 5}, 5},
         {"popc.b32 %d, %a;", {0xf00f}, 8},
         {"clz.b32 %d, %a;", {0x00010000}, 15},
         {"clz.b32 %d, %a;", {0}, 32},
         {"bfind.u32 %d, %a;", {0x00010400}, 16},
         {"bfind.shiftamt.u32 %d, %a;", {0x00010400}, 15},
         {"bfind.shiftamt.u32 %d, %a;", {0}, 0xffffffff},
         {"bfind.u64 %d, %a;", {std::uint64_t(1) << 40}, 40},
         {"brev.b32 %d, %a;", {0x80000013}, 0xc8000001},
         {"bfi.b32 %d, %a, %b, 8, 4;", {0xabc, 0x11111111}, 0x11111c11},
         {"prmt.b32 %d, %a, %b, 0x7410;", {0x33221100, 0x77665544}, 0x77441100},
         {"prmt.b32 %d, %a, %b, 0x8888;", {0x80}, 0xffffffff},
         {"mov.b32 %d, {%a, %b};", {0x1111, 0x2222}, 0x22221111},
         {"mov.b32 {_, %d}, %a;", {0x22221111}, 0x2222}},
        32);
}

TEST_CASE("ptx: integers of 16 and 64 bits", "[ptx]") {
  check({{"add.s16 %d, %a, %b;", {0x7fff, 1}, 0x8000},
         {"div.u16 %d, %a, %b;", {0xfffe, 2}, 0x7fff},
         {"rem.u16 %d, %a, %b;", {7, 4}, 3},
         {"min.u16 %d, %a, %b;", {0xffff, 1}, 1},
         {"max.u16 %d, %a, %b;", {0xffff, 1}, 0xffff},
         {"neg.s16 %d, %a;", {1}, 0xffff}},
        16);
  check({{"add.s64 %d, %a, %b;", {~std::uint64_t(0), 2}, 1},
         {"sub.s64 %d, %a, %b;", {0, 1}, ~std::uint64_t(0)},
         {"mul.lo.s64 %d, %a, %b;", {signs(-3), 5}, signs(-15)},
         {"mul.hi.u64 %d, %a, %b;", {std::uint64_t(1) << 63, 6}, 3},
         {"mul.wide.u32 %d, %a, %b;", {0xffffffff, 0xffffffff}, 0xfffffffe00000001},
         {"mul.wide.s32 %d, %a, %b;", {0xffffffff, 3}, signs(-3)},
         {"mad.wide.u32 %d, %a, %b, %c;", {0xffffffff, 2, 5}, 0x200000003},
         {"div.s64 %d, %a, %b;", {signs(-7), 2}, signs(-3)},
         {"div.u64 %d, %a, %b;", {signs(-2), 2}, 0x7fffffffffffffff},
         {"rem.s64 %d, %a, %b;", {signs(-7), 4}, signs(-3)},
         {"min.s64 %d, %a, %b;", {signs(-1), 1}, signs(-1)},
         {"max.s64 %d, %a, %b;", {signs(-1), 1}, 1},
         {"neg.s64 %d, %a;", {1}, signs(-1)},
         {"abs.s64 %d, %a;", {signs(-9)}, 9},
         {"shl.b64 %d, %a, 63;", {1}, std::uint64_t(1) << 63},
         {"shl.b64 %d, %a, 64;", {1}, 0},
         {"shr.s64 %d, %a, 70;", {signs(-9)}, signs(-1)},
         {"bfi.b64 %d, %a, %b, 32, 32;", {5, 7}, 0x500000007},
         {"clz.b64 %d, %a;", {1}, 63},
         {"brev.b64 %d, %a;", {6}, std::uint64_t(3) << 61},
         {"not.b64 %d, %a;", {0}, ~std::uint64_t(0)},
         {"mov.b64 %d, {%a, %b};", {1, 2}, 0x200000001},
         {"mov.b64 {%d, _}, %a;", {0x200000001}, 1},
         {"mov.u64 %d, -1;", {}, ~std::uint64_t(0)},
         {"mov.b64 %d, 0d3FF0000000000000;", {}, bits(1.0)}},
        64);
}

TEST_CASE("ptx: predicates", "[ptx]") {
  struct Compared {
    const char* op;
    std::uint64_t a, b;
    bool yes;
  };
  const std::uint64_t one = bits(1.0f), two = bits(2.0f), nan = bits(kNaN);
  for (const Compared& row :
       {Compared{"eq.s32", 3, 3, true},   {"ne.s32", 3, 3, false},
        {"lt.s32", signs(-1), 1, true},   {"lt.u32", signs(-1), 1, false},
        {"le.s64", 1, 1, true},           {"gt.s16", 0x8000, 0, false},
        {"ge.u64", signs(-1), 1, true},   {"lt.f32", one, two, true},
        {"lt.f32", nan, two, false},      {"ltu.f32", nan, two, true},
        {"geu.f32", one, two, false},     {"ne.f32", nan, nan, false},
        {"neu.f32", nan, nan, true},      {"equ.f32", nan, one, true},
        {"leu.f32", two, one, false},     {"gtu.f64", bits(1.0), bits(2.0), false},
        {"num.f32", one, nan, false},     {"nan.f32", one, nan, true},
        {"eq.f32", bits(-0.0f), 0, true}, {"eq.ftz.f32", bits(kTiny), 0, true}}) {
    INFO(row.op);
    const std::string text = std::string("setp.") + row.op + " %p1, %a, %b;";
    check({{(text + "selp.u32 %d, 1, 0, %p1;").c_str(), {row.a, row.b}, row.yes}}, 32);
  }
  check({{"setp.eq.s32 %p1, 1, 2; not.pred %p1, %p1; selp.u32 %d, 1, 0, %p1;", {}, 1},
         {"setp.eq.s32 %p0, 1, 1; and.pred %p1, %p0, %p0; selp.u32 %d, 1, 0, %p1;", {}, 1},
         {"setp.eq.s32 %p1, 1, 1; xor.pred %p2, %p1, %p1; or.pred %p2, %p2, %p1;"
          "mov.pred %p3, %p2; selp.u32 %d, 1, 0, %p3;",
          {},
          1},
         {"setp.eq.s32 %p1, 1, 1; @%p1 mov.u32 %d, 4; @!%p1 mov.u32 %d, 5;", {}, 4}},
        32);
}

TEST_CASE("ptx: floating point of 32 bits", "[ptx]") {
  const std::uint64_t one = bits(1.0f), third = bits(1.0f / 3), tiny = bits(kTiny);
  const float above = std::nextafter(1.0f, 2.0f);
  check({{"add.f32 %d, %a, %b;", {one, bits(0x1p-24f)}, one},
         {"add.rz.f32 %d, %a, %b;", {bits(above), bits(0x1.fp-24f)}, bits(above)},
         {"add.rm.f32 %d, %a, %b;", {one, bits(-0x1p-40f)}, bits(std::nextafter(1.0f, 0.0f))},
         {"add.rp.f32 %d, %a, %b;", {one, bits(0x1p-40f)}, bits(above)},
         {"add.f32 %d, %a, %b;", {tiny, 0}, tiny},
         {"add.ftz.f32 %d, %a, %b;", {tiny, 0}, 0},
         {"add.f32 %d, %a, %b;", {bits(kInf), bits(-kInf)}, kOneNaN},
         {"sub.f32 %d, %a, %b;", {one, third}, bits(1.0f - 1.0f / 3)},
         {"mul.f32 %d, %a, %b;", {third, third}, bits((1.0f / 3) * (1.0f / 3))},
         {"mul.rn.f32 %d, %a, %b;", {third, third}, bits((1.0f / 3) * (1.0f / 3))},
         {"fma.rn.f32 %d, %a, %b, %c;",
          {bits(above), bits(above), bits(-above * above)},
          bits(std::fma(above, above, -above * above))},
         // the assembler fuses what says no rounding
         {"mul.f32 %e, %a, %a; sub.f32 %d, %e, %b;",
          {bits(above), bits(above * above)},
          bits(std::fma(above, above, -above * above))},
         {"mul.f32 %e, %a, %a; sub.f32 %d, %b, %e;",
          {bits(above), bits(above * above)},
          bits(-std::fma(above, above, -above * above))},
         {"mul.f32 %e, %a, %a; add.f32 %d, %b, %e;",
          {bits(above), bits(-above * above)},
          bits(std::fma(above, above, -above * above))},
         {"mul.rn.f32 %e, %a, %a; sub.f32 %d, %e, %b;", {bits(above), bits(above * above)}, 0},
         {"mul.f32 %e, %a, %a; sub.rn.f32 %d, %e, %b;", {bits(above), bits(above * above)}, 0},
         {"mul.f32 %e, %a, %a; mov.b32 %a, 0; sub.f32 %d, %e, %b;",
          {bits(above), bits(above * above)},
          0},
         {"fma.rm.f32 %d, %a, %b, %c;", {bits(above), bits(above), 0}, bits(1.0f + 0x1p-22f)},
         {"div.rn.f32 %d, %a, %b;", {one, bits(3.0f)}, third},
         {"div.approx.ftz.f32 %d, %a, %b;", {one, bits(4.0f)}, bits(0.25f)},
         {"min.f32 %d, %a, %b;", {bits(kNaN), one}, one},
         {"min.f32 %d, %a, %b;", {0, bits(-0.0f)}, bits(-0.0f)},
         {"max.f32 %d, %a, %b;", {bits(kNaN), bits(kNaN)}, kOneNaN},
         {"max.f32 %d, %a, %b;", {0, bits(-0.0f)}, 0},
         {"neg.f32 %d, %a;", {one}, bits(-1.0f)},
         {"abs.f32 %d, %a;", {bits(-1.0f)}, one},
         {"copysign.f32 %d, %a, %b;", {bits(-2.0f), one}, bits(-1.0f)},
         {"rcp.rn.f32 %d, %a;", {bits(3.0f)}, third},
         {"rcp.approx.ftz.f32 %d, %a;", {bits(kTiny)}, bits(kInf)},
         {"sqrt.rn.f32 %d, %a;", {bits(2.0f)}, bits(std::sqrt(2.0f))},
         {"rsqrt.approx.ftz.f32 %d, %a;", {bits(4.0f)}, bits(0.5f)},
         {"ex2.approx.f32 %d, %a;", {bits(-3.0f)}, bits(0.125f)},
         {"ex2.approx.ftz.f32 %d, %a;", {bits(-130.0f)}, 0}},
        32);
}

TEST_CASE("ptx: floating point of 64 bits", "[ptx]") {
  const std::uint64_t third = bits(1.0 / 3);
  const double above = std::nextafter(1.0, 2.0);
  check({{"add.f64 %d, %a, %b;", {bits(1.0), bits(0x1p-53)}, bits(1.0)},
         {"add.rn.f64 %d, %a, %b;", {bits(1.0), bits(2.0)}, bits(3.0)},
         {"sub.f64 %d, %a, %b;", {bits(1.0), third}, bits(1.0 - 1.0 / 3)},
         {"mul.f64 %d, %a, %b;", {third, third}, bits((1.0 / 3) * (1.0 / 3))},
         {"fma.rn.f64 %d, %a, %b, %c;",
          {bits(above), bits(above), bits(-above * above)},
          bits(std::fma(above, above, -above * above))},
         {"div.rn.f64 %d, %a, %b;", {bits(1.0), bits(3.0)}, third},
         {"min.f64 %d, %a, %b;", {bits(2.0), bits(1.0)}, bits(1.0)},
         {"max.f64 %d, %a, %b;", {bits(2.0), bits(double(kNaN))}, bits(2.0)},
         {"neg.f64 %d, %a;", {bits(1.0)}, bits(-1.0)},
         {"abs.f64 %d, %a;", {bits(-1.0)}, bits(1.0)},
         {"copysign.f64 %d, %a, %b;", {bits(-2.0), bits(1.0)}, bits(-1.0)},
         {"rcp.rn.f64 %d, %a;", {bits(3.0)}, third},
         {"rcp.approx.ftz.f64 %d, %a;", {bits(3.0)}, third & 0xffffffff00000000},
         {"rsqrt.approx.ftz.f64 %d, %a;", {bits(4.0)}, bits(0.5)},
         {"sqrt.rn.f64 %d, %a;", {bits(2.0)}, bits(std::sqrt(2.0))}},
        64);
}

TEST_CASE("ptx: conversions", "[ptx]") {
  check({{"cvt.u32.u64 %d, %a;", {0x1ffffffff}, 0xffffffff},
         {"cvt.u16.u32 %d, %a;", {0x12345}, 0x2345},
         {"cvt.s32.s8 %d, %a;", {0x80}, signs(-128)},
         {"cvt.sat.u8.s32 %d, %a;", {signs(-5)}, 0},
         {"cvt.sat.f32.f32 %d, %a;", {bits(kNaN)}, 0},
         {"cvt.sat.f32.f32 %d, %a;", {bits(7.0f)}, bits(1.0f)},
         {"cvt.rn.f32.f64 %d, %a;", {bits(1.0 / 3)}, bits(1.0f / 3)},
         {"cvt.rn.f32.s32 %d, %a;", {signs(-16777217)}, bits(-16777216.0f)},
         {"cvt.rn.f32.u32 %d, %a;", {0xffffffff}, bits(4294967296.0f)},
         {"cvt.rn.f32.s64 %d, %a;", {signs(-3)}, bits(-3.0f)},
         {"cvt.rni.f32.f32 %d, %a;", {bits(2.5f)}, bits(2.0f)},
         {"cvt.rzi.f32.f32 %d, %a;", {bits(-2.5f)}, bits(-2.0f)},
         {"cvt.rmi.f32.f32 %d, %a;", {bits(-2.5f)}, bits(-3.0f)},
         {"cvt.rpi.f32.f32 %d, %a;", {bits(2.25f)}, bits(3.0f)},
         {"cvt.rni.s32.f32 %d, %a;", {bits(-3.5f)}, signs(-4)},
         {"cvt.rzi.s32.f32 %d, %a;", {bits(1e10f)}, 0x7fffffff},
         {"cvt.rzi.s32.f32 %d, %a;", {bits(kNaN)}, 0},
         {"cvt.rzi.s32.f64 %d, %a;", {bits(double(kNaN))}, 0x80000000},
         {"cvt.rzi.u32.f32 %d, %a;", {bits(-1.0f)}, 0},
         {"cvt.rna.tf32.f32 %d, %a;", {bits(2049.0f)}, bits(2050.0f)},
         {"cvt.rna.tf32.f32 %d, %a;", {bits(-2048.9f)}, bits(-2048.0f)},
         {"cvt.rna.tf32.f32 %d, %a;", {bits(INFINITY)}, bits(INFINITY)},
         {"cvt.rn.f16.f32 %d, %a;", {bits(1.0f)}, 0x3c00},
         {"cvt.rn.f16.f32 %d, %a;", {bits(1.0f + 0x1p-11f)}, 0x3c00},
         {"cvt.rn.f16.f32 %d, %a;", {bits(1.0f + 3 * 0x1p-11f)}, 0x3c02},
         {"cvt.rn.f16.f32 %d, %a;", {bits(-0x1p-24f)}, 0x8001},
         {"cvt.rn.f16.f32 %d, %a;", {bits(65520.0f)}, 0x7c00},
         {"cvt.rn.f16.f32 %d, %a;", {bits(kNaN)}, 0x7fff},
         {"cvt.rn.f16.f64 %d, %a;", {bits(0.5)}, 0x3800},
         {"cvt.f32.f16 %d, %a;", {0x8001}, bits(-0x1p-24f)},
         {"cvt.f32.f16 %d, %a;", {0x7bff}, bits(65504.0f)},
         {"cvt.f32.f16 %d, %a;", {0xfc00}, bits(-kInf)},
         {"cvt.rn.bf16.f32 %d, %a;", {bits(1.0f + 0x1p-8f)}, 0x3f80},
         {"cvt.rn.bf16.f32 %d, %a;", {bits(1.0f + 3 * 0x1p-8f)}, 0x3f82},
         {"cvt.rn.bf16.f32 %d, %a;", {bits(3.4e38f)}, 0x7f80},
         {"cvt.rn.bf16.f32 %d, %a;", {bits(-0x1p-133f)}, 0x8001},
         {"cvt.rn.f16x2.f32 %d, %a, %b;", {bits(1.0f), bits(-0x1p-24f)}, 0x3c008001},
         {"cvt.rn.bf16x2.f32 %d, %a, %b;", {bits(1.0f + 3 * 0x1p-8f), bits(-0.0f)}, 0x3f828000},
         {"cvt.f32.bf16 %d, %a;", {0x3f80}, bits(1.0f)}},
        32);
  check({{"cvt.u64.u32 %d, %a;", {0xffffffff}, 0xffffffff},
         {"cvt.s64.s32 %d, %a;", {0xffffffff}, signs(-1)},
         {"cvt.u64.u16 %d, %a;", {0x1ffff}, 0xffff},
         {"cvt.f64.f32 %d, %a;", {bits(0.1f)}, bits(double(0.1f))},
         {"cvt.rn.f64.s64 %d, %a;", {signs(-9007199254740993)}, bits(-9007199254740992.0)},
         {"cvt.rn.f64.u64 %d, %a;", {signs(-1)}, bits(0x1p64)},
         {"cvt.rni.f64.f64 %d, %a;", {bits(3.5)}, bits(4.0)},
         {"cvt.rzi.s64.f64 %d, %a;", {bits(-1e300)}, std::uint64_t(1) << 63},
         {"cvt.rzi.s64.f32 %d, %a;", {bits(-2.75f)}, signs(-2)}},
        64);
}
