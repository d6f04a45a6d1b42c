// Memory, barriers, warps and calls: operations of several threads, under each order of the
// threads.
#include <cstdlib>
#include <cstring>
#include <functional>

#include "ptx/small_kernel.hpp"

using namespace ptx_test;
using ptx::Order;
using Numbers = std::vector<std::uint64_t>;

namespace {

constexpr Order kOrders[] = {Order::forward, Order::reverse, Order::random};
const std::string kStore = "st.global.u64 [%out], %d;";
/// Each of 64 threads writes its index to shared memory and reads the value of another thread.
std::string neighbours(const std::string& between) {
  return kernel(".shared .align 8 .b8 part[512];\n" + kMine +
                "mul.lo.s32 %r1, %r0, 8; mov.u32 %r2, part; add.s32 %r2, %r2, %r1;"
                "cvt.u64.u32 %d, %r0; st.shared.u64 [%r2], %d;" +
                between +
                "xor.b32 %r1, %r1, 504; mov.u32 %r2, part; add.s32 %r2, %r2, %r1;"
                "ld.shared.u64 %d, [%r2];" +
                kStore);
}
Numbers warp(const std::string& text, unsigned count = 32, Order order = Order::forward) {
  return results(kernel(kMine + text + kStore), threads(count, order));
}
std::string what(const std::function<void()>& f) {
  try {
    f();
  } catch (const ptx::Error& e) {
    return e.what();
  }
  return "";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("ptx: bar.sync", "[ptx]") {
  for (const Order order : kOrders)
    for (const char* barrier : {"bar.sync 0;", "bar.sync 1, 64;"}) {
      const Numbers got = results(neighbours(barrier), threads(64, order));
      for (unsigned k = 0; k < 64; ++k) CHECK(got[k] == 63 - k);
    }
  // Without the barrier, some order reads values that are not written yet.
  CHECK(results(neighbours(""), threads(64))[0] == ~std::uint64_t(0));
  CHECK(results(neighbours(""), threads(64, Order::reverse))[63] == ~std::uint64_t(0));
}

TEST_CASE("ptx: bar.red", "[ptx]") {
  for (const Order order : kOrders)
    for (const auto& [vote, least, result] : {std::tuple{"bar.red.or.pred %p2, 0, %p1;", 63, 1u},
                                              {"bar.red.or.pred %p2, 0, %p1;", 64, 0u},
                                              {"bar.red.and.pred %p2, 1, 64, %p1;", 0, 1u},
                                              {"bar.red.and.pred %p2, 1, 64, %p1;", 1, 0u},
                                              {"bar.red.and.pred %p2, 0, !%p1;", 64, 1u},
                                              {"bar.red.or.pred %p2, 0, !%p1;", 0, 0u}}) {
      const std::string text = kMine + "setp.ge.s32 %p1, %r0, " + std::to_string(least) + "; " +
                               vote + " selp.u64 %d, 1, 0, %p2;" + kStore;
      CHECK(results(kernel(text), threads(64, order)) == Numbers(64, result));
    }
}

TEST_CASE("ptx: shfl, vote, bar.warp", "[ptx]") {
  for (const Order order : kOrders) {
    const Numbers butterfly = warp("shfl.sync.bfly.b32 %d, %r0, 5, 31, -1;", 32, order),
                  up = warp("shfl.sync.up.b32 %d|%p1, %r0, 3, 0, -1; @!%p1 add.u64 %d, %d, 100;",
                            32, order),
                  down = warp("shfl.sync.down.b32 %d, %r0, 3, 0x181f, -1;", 32, order),
                  indexed = warp("shfl.sync.idx.b32 %d, %r0, 7, 31, -1;", 32, order);
    for (unsigned l = 0; l < 32; ++l) {
      CHECK(butterfly[l] == (l ^ 5));
      CHECK(up[l] == (l < 3 ? 100 + l : l - 3));
      CHECK(down[l] == (l % 8 + 3 < 8 ? l + 3 : l));  // segments of 8
      CHECK(indexed[l] == 7);
    }
    for (const auto& [text, expected] :
         {std::pair{"vote.sync.ballot.b32 %d, %p1, -1;", 0x0000001f},
          {"vote.sync.any.pred %p2, %p1, -1; selp.u32 %d, 1, 0, %p2;", 1},
          {"vote.sync.all.pred %p2, %p1, -1; selp.u32 %d, 1, 0, %p2;", 0},
          {"bar.warp.sync -1; mov.u32 %d, 9;", 9}})
      CHECK(warp("setp.lt.u32 %p1, %r0, 5;" + std::string(text), 32, order)[31] ==
            static_cast<std::uint64_t>(expected));
  }
  CHECK(has(what([] { warp("shfl.sync.idx.b32 %d, %r0, 9, 31, 15;", 4); }), "takes no part"));
  CHECK(has(what([] { warp("shfl.sync.idx.b32 %d, %r0, 0, 31, 1;", 4); }), "not in its mask"));
}

TEST_CASE("ptx: ldmatrix", "[ptx]") {
  // Row r of matrix m has the elements 100 m + 10 r + column, at an address of lane 8 m + r: the
  // lanes fill shared memory in reverse.
  const auto load = [](const std::string& count, const std::string& to, Order order) {
    return results(
        kernel(".shared .align 16 .b8 part[512];\n.reg .b32 %x<4>; .reg .b16 %h<2>;" + kMine +
               "mov.u32 %r1, part; sub.u32 %r2, 31, %r0; mad.lo.u32 %r2, %r2, 16, %r1;"
               "shr.u32 %r3, %r0, 3; and.b32 %r4, %r0, 7; mul.lo.u32 %r3, %r3, 100;"
               "mad.lo.u32 %r3, %r4, 10, %r3; mov.u32 %r5, 0;"
               "L: shl.b32 %r6, %r5, 1; add.u32 %r6, %r6, %r2; add.u32 %r7, %r3, %r5;"
               "st.shared.u16 [%r6], %r7; add.u32 %r5, %r5, 1;"
               "setp.lt.u32 %p1, %r5, 8; @%p1 bra L; bar.sync 0; mov.u32 %x3, 0;"
               "ldmatrix.sync.aligned.m8n8." +
               count + ".shared.b16 " + to + ", [%r2];" + "mov.b64 %d, {%x0, %x3};" + kStore),
        threads(32, order));
  };
  for (const Order order : kOrders) {
    const Numbers four = load("x4", "{%x0, %x1, %x2, %x3}", order),
                  turned = load("x4.trans", "{%x0, %x1, %x2, %x3}", order),
                  two = load("x2", "{%x0, %x3}", order), one = load("x1", "{%x0}", order);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const auto pair = [&](unsigned matrix, bool transposed) {
        const unsigned g = lane / 4, k = lane % 4 * 2;
        return std::uint64_t(100 * matrix + (transposed ? 10 * k + g : 10 * g + k)) |
               std::uint64_t(100 * matrix + (transposed ? 10 * k + 10 + g : 10 * g + k + 1)) << 16;
      };
      CHECK(four[lane] == (pair(0, false) | pair(3, false) << 32));
      CHECK(turned[lane] == (pair(0, true) | pair(3, true) << 32));
      CHECK(two[lane] == (pair(0, false) | pair(1, false) << 32));
      CHECK(one[lane] == pair(0, false));
    }
  }
  CHECK(has(what([] { warp("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r0];", 4); }),
            "in a warp of 4"));
}

TEST_CASE("ptx: mma.sync", "[ptx]") {
  struct Form {
    const char* types;
    unsigned each;  // elements of a register
    std::uint32_t (*bits)(int);
  };
  const auto of_tf32 = [](int x) { return std::bit_cast<std::uint32_t>(static_cast<float>(x)); };
  const auto of_bf16 = [](int x) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16;
  };
  const auto of_half = [](int x) {  // |x| from 1 to 3
    const std::uint32_t sign = x < 0 ? 0x8000 : 0, size = static_cast<std::uint32_t>(std::abs(x));
    return sign | (size == 0 ? 0u : size == 1 ? 0x3c00u : size == 2 ? 0x4000u : 0x4200u);
  };
  for (const Form& form : {Form{"m16n8k8.row.col.f32.tf32.tf32.f32", 1, of_tf32},
                           {"m16n8k16.row.col.f32.bf16.bf16.f32", 2, of_bf16},
                           {"m16n8k16.row.col.f32.f16.f16.f32", 2, of_half}}) {
    INFO(form.types);
    const unsigned depth = 8 * form.each;
    const auto left = [](unsigned row, unsigned k) {
      return static_cast<int>(row * 5 + k * 3) % 7 - 3;
    };
    const auto right = [](unsigned k, unsigned n) {
      return static_cast<int>(k * 2 + n * 5) % 7 - 3;
    };
    std::vector<std::uint32_t> in(32 * 10), out(32 * 4);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned k = 0; k < depth; ++k) {
        // which register of which lane, and which part of it
        const unsigned column = k / form.each, lane = row % 8 * 4 + column % 4,
                       which = row / 8 + column / 4 * 2;
        in[lane * 10 + which] |= form.bits(left(row, k)) << 16 * (k % form.each);
      }
    for (unsigned k = 0; k < depth; ++k)
      for (unsigned n = 0; n < 8; ++n) {
        const unsigned row = k / form.each, lane = n * 4 + row % 4, which = row / 4;
        in[lane * 10 + 4 + which] |= form.bits(right(k, n)) << 16 * (k % form.each);
      }
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned c = 0; c < 4; ++c)
        in[lane * 10 + 6 + c] = std::bit_cast<std::uint32_t>(static_cast<float>(lane * 4 + c));
    std::string text = ".reg .b32 %x<14>;" + kMine + "mad.wide.u32 %e, %r0, 40, %a;";
    for (int k = 0; k < 10; ++k)
      text += "ld.global.u32 %x" + std::to_string(k) + ", [%e+" + std::to_string(4 * k) + "];";
    text += "mma.sync.aligned." + std::string(form.types) +
            " {%x10, %x11, %x12, %x13}, {%x0, %x1, %x2, %x3}, {%x4, %x5}, {%x6, %x7, %x8, %x9};"
            "mad.wide.u32 %e, %r0, 16, %b; st.global.v4.u32 [%e], {%x10, %x11, %x12, %x13};";
    for (const Order order : kOrders) {
      (void)results(kernel(text), threads(32, order),
                    {reinterpret_cast<std::uint64_t>(in.data()),
                     reinterpret_cast<std::uint64_t>(out.data()), 0});
      for (unsigned row = 0; row < 16; ++row)
        for (unsigned n = 0; n < 8; ++n) {
          const unsigned lane = row % 8 * 4 + n / 2, c = row / 8 * 2 + n % 2;
          int expected = static_cast<int>(lane * 4 + c);
          for (unsigned k = 0; k < depth; ++k) expected += left(row, k) * right(k, n);
          CHECK(std::bit_cast<float>(out[lane * 4 + c]) == static_cast<float>(expected));
        }
    }
  }
}

TEST_CASE("ptx: cp.async arrives when it is waited for", "[ptx]") {
  std::vector<std::uint64_t> source{11, 12, 13, 14};
  const Numbers from{reinterpret_cast<std::uint64_t>(source.data()), 0, 0};
  const auto get = [&](const std::string& wait, const char* size = "8") {
    return results(kernel(".shared .align 16 .b8 part[16];\nmov.u32 %r2, part;"
                          "cp.async.ca.shared.global [%r2], [%a], 8, " +
                          std::string(size) +
                          "; cp.async.commit_group;"
                          "cp.async.ca.shared.global [%r2+8], [%a+16], 8; cp.async.commit_group;" +
                          wait +
                          "ld.shared.u64 %d, [%r2+8]; @%p0 add.u64 %d, %d, 0;"
                          "ld.shared.u64 %e, [%r2]; mad.lo.u64 %d, %e, 100, %d;" +
                          kStore),
                   threads(1), from)[0];
  };
  const std::uint64_t nothing = ~std::uint64_t(0);
  CHECK(get("cp.async.wait_all;") == 1113);
  CHECK(get("cp.async.wait_group 0;") == 1113);
  CHECK(get("cp.async.wait_group 0;", "0") == 13);  // zeros for the bytes that are not read
  CHECK(get("cp.async.wait_group 1;") == 1100 + nothing);
  CHECK(get("") == nothing * 100 + nothing);
}

TEST_CASE("ptx: loads, stores, atomics, addresses", "[ptx]") {
  std::vector<std::uint64_t> data{1, 2, 0x8000000000000003, 4};
  const auto address = reinterpret_cast<std::uint64_t>(data.data());
  const auto one = [&](const std::string& text, const std::string& before = "") {
    return results(kernel(text + kStore, before), threads(1), {address, 7, 2})[0];
  };
  CHECK(one("ld.global.v2.u64 {%e, %d}, [%a];") == 2);
  CHECK(one("ld.global.nc.u32 %d, [%a+20];") == 0x80000000);
  CHECK(one("ld.global.s8 %d, [%a+23];") == static_cast<std::uint64_t>(-128));
  CHECK(one("st.global.v2.u32 [%a+8], {%b, 1}; ld.u64 %d, [%a+8];") == 0x100000007);
  data = {1, 2, 3, 4};
  CHECK(one("atom.global.exch.b64 %d, [%a], %b;") == 1);
  CHECK(one("atom.global.cas.b64 %d, [%a+8], 2, 9;") == 2);
  CHECK(one("atom.global.cas.b64 %d, [%a+16], 2, 9;") == 3);
  CHECK(data == Numbers{7, 9, 3, 4});
  CHECK(one("atom.global.add.u64 %d, [%a], %b;") == 7);
  CHECK(one("atom.global.add.s32 %d, [%a+8], -12;") == 9);
  CHECK(one("atom.global.inc.u32 %d, [%a+16], 3;") == 3);  // 3 is the last: it starts again at 0
  CHECK(one("atom.global.inc.u32 %d, [%a+24], 5;") == 4);
  CHECK(data == Numbers{14, 0xfffffffd, 0, 5});
  CHECK(one("atom.acq_rel.gpu.global.inc.u32 %d, [%a+24], 4;") == 5);
  CHECK(one("mov.u32 %r0, 0f3FC00000; st.global.u32 [%a], %r0;"
            "atom.global.add.f32 %r1, [%a], 0f3F800000; ld.global.u32 %d, [%a];") == bits(2.5f));
  CHECK(data == Numbers{bits(2.5f), 0xfffffffd, 0, 0});
  CHECK(one("st.release.gpu.global.u32 [%a+4], 6; ld.acquire.gpu.global.u64 %d, [%a];") ==
        (bits(2.5f) | std::uint64_t(6) << 32));
  CHECK(one("st.release.gpu.global.u64 [%a], %b; ld.acquire.gpu.global.u32 %d, [%a];") == 7);
  CHECK(one(".local .align 8 .b8 depot[16]; mov.u64 %e, depot; cvta.local.u64 %d, %e;"
            "st.u64 [%d+8], 5; cvta.to.local.u64 %e, %d; ld.local.u64 %d, [%e+8];") == 5);
  CHECK(one("mov.u64 %e, table; cvta.global.u64 %e, %e; ld.global.u16 %d, [%e+2];",
            ".global .align 4 .b16 table[3] = {4, 5, 6};\n") == 5);
  CHECK(one("fence.acq_rel.gpu; fence.sc.cta; membar.gl; bra.uni L1; mov.u64 %d, 1; L1: @%p0 bra "
            "L2; L2: exit;") == 0);
  CHECK(one("{ .reg .b64 %d; mov.u64 %d, 8; } add.u64 %d, %d, 1;") == 1);
}

TEST_CASE("ptx: functions, dynamic shared memory, places", "[ptx]") {
  const std::string twice =
      ".func (.param .b64 f_r) twice(.param .b64 f_x)\n;\n"
      ".func (.param .b64 f_r) twice(.param .b64 f_x)\n{\n.reg .b64 %d;\n.reg .pred %p<2>;\n"
      "ld.param.u64 %d, [f_x];\nsetp.eq.s64 %p1, %d, 0;\n@%p1 bra L1;\nadd.u64 %d, %d, %d;\n"
      "st.param.b64 [f_r], %d;\nret;\nL1: st.param.b64 [f_r], 77; ret;\n}\n";
  const auto call = [](const std::string& x) {
    return "{ .param .b64 p0; st.param.b64 [p0], " + x +
           "; .param .b64 r0; call.uni (r0), twice, (p0); ld.param.b64 %d, [r0+0]; }";
  };
  const auto one = [&](const std::string& text, const std::string& before) {
    return results(kernel(text + kStore, before), threads(1), {21, 0, 0})[0];
  };
  CHECK(one(call("%a"), twice) == 42);
  CHECK(one(call("%a") + call("%d"), twice) == 84);
  CHECK(one(call("0"), twice) == 77);
  ptx::Launch launch{{2, 1, 1}, {3, 1, 1}, 16};
  const std::string where =
      "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, %laneid;"
      "mad.lo.s32 %r5, %r1, %r2, %r3; mad.wide.u32 %out, %r5, 8, %out; mov.u32 %r6, %nctaid.x;"
      "mov.u32 %r7, dynamic; st.shared.u32 [%r7+12], %r4; ld.shared.u32 %r4, [%r7+12];"
      "mad.lo.s32 %r5, %r6, 100, %r5; mad.lo.s32 %r5, %r4, 10, %r5; cvt.u64.u32 %d, %r5;";
  for (const Order order : kOrders) {
    launch.order = order;
    CHECK(results(kernel(where + kStore, ".extern .shared .align 16 .b8 dynamic[];\n"), launch) ==
          Numbers{200, 211, 222, 203, 214, 225});
  }
}

TEST_CASE("ptx: flags between threads and blocks", "[ptx]") {
  // Thread 0 waits for thread 33 of its block.
  std::vector<std::uint64_t> flags(4);
  const auto address = reinterpret_cast<std::uint64_t>(flags.data());
  const std::string mine =
      kMine +
      "mov.u32 %r1, %ctaid.x;"
      "mad.wide.u32 %e, %r1, 8, %a; setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 33;";
  const std::string pair =
      "@%p1 st.release.gpu.global.u64 [%e], 5; @!%p0 bra END;"
      "L: ld.acquire.gpu.global.u64 %d, [%e];"
      "setp.eq.u64 %p2, %d, 0; @%p2 bra L; END:";
  for (const Order order : kOrders) {
    flags.assign(4, 0);
    CHECK(results(kernel(mine + pair + kStore), threads(64, order), {address, 0, 0})[0] == 5);
  }
  // Block 1 waits for block 0, which has not begun in the reverse order.
  const std::string earlier =
      "@!%p0 bra END; setp.eq.u32 %p2, %r1, 0; @%p2 bra SET;"
      "L: ld.acquire.gpu.global.u64 %d, [%e+-8];"
      "setp.eq.u64 %p2, %d, 0; @%p2 bra L;"
      "SET: st.release.gpu.global.u64 [%e], 5; END:";
  for (const Order order : {Order::forward, Order::reverse}) {
    flags.assign(4, 0);
    ptx::Launch launch = threads(64, order);
    launch.grid.x = 2;
    const std::string error =
        what([&] { results(kernel(mine + earlier), launch, {address, 0, 0}); });
    if (order == Order::forward) CHECK(error.empty());
    else
      CHECK(has(error,
                "waits for a value that no block which has begun will write in k, "
                "block 1,0,0, thread 0: ld.acquire"));
  }
}

TEST_CASE("ptx: what no kernel may do", "[ptx]") {
  static std::uint64_t readable = 0;
  std::vector<std::uint64_t> data(2);
  readable = reinterpret_cast<std::uint64_t>(data.data());
  const auto failing = [&](const std::string& text, unsigned count = 1,
                           decltype(ptx::allows) allows = nullptr) {
    return what([&] { results(kernel(text), threads(count), {readable, 0, 0}, allows); });
  };
  CHECK(has(failing("ld.global.u32 %d, [%a+2];"), "misaligned access of 4 bytes"));
  CHECK(has(failing(".shared .b8 part[4]; mov.u32 %r1, part; ld.shared.u32 %d, [%r1+16];"),
            "outside of shared memory"));
  CHECK(
      has(failing("st.shared.u64 [8], %d;"), "in k, block 0,0,0, thread 0: st.shared.u64 [8], %d"));
  CHECK(has(failing("bar.sync 0, 2;"), "deadlock"));
  CHECK(has(failing("mov.u32 %r0, %tid.x; setp.eq.s32 %p1, %r0, 0; @%p1 bar.sync 0;"
                    "@!%p1 bar.sync 1;",
                    2),
            "different barriers"));
  CHECK(has(failing("mov.u32 %r0, %tid.x; setp.eq.s32 %p1, %r0, 0; @%p1 bar.sync 0;"
                    "@!%p1 bar.red.or.pred %p2, 0, %p1;",
                    2),
            "different barriers"));
  const auto allows = [](std::uint64_t at, std::size_t bytes, bool write) {
    return !write && at >= readable && at + bytes <= readable + 16;
  };
  CHECK(failing("ld.global.u64 %d, [%a+8];", 1, allows).empty());
  CHECK(has(failing("ld.global.u64 %d, [%a+16];", 1, allows), "illegal read of 8 bytes"));
  CHECK(has(failing("st.global.u64 [%a], %d;", 1, allows), "illegal write"));
  CHECK(has(failing(".shared .b8 part[16]; mov.u32 %r1, part;"
                    "cp.async.ca.shared.global [%r1], [%a+16], 8;",
                    1, allows),
            "illegal read"));
}

TEST_CASE("ptx: a block of more threads than the kernel's launch bounds", "[ptx]") {
  const auto failing = [](const std::string& limits, unsigned count) {
    std::string text = kernel("");
    text.insert(text.find("{\n"), limits);
    return what([&] { results(text, threads(count)); });
  };
  for (const char* limits : {".maxntid 64\n", ".maxntid 32, 2, 1\n.minnctapersm 2\n"}) {
    CHECK(failing(limits, 64).empty());
    CHECK(has(failing(limits, 65), "k: a block of 65 threads, and .maxntid is 64"));
  }
}

TEST_CASE("ptx: what is not known is refused", "[ptx]") {
  for (const char* text :
       {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0}, {%r0}, {%r0}, {%r0};",
        "add.u8 %d, %a, %b;",
        "add.sat.s32 %d, %a, %b;",
        "add.rn.s32 %d, %a, %b;",
        "add.s32 %d, %a;",
        "add.s32 %d, %a, %b, %c;",
        "mul.s32 %d, %a, %b;",
        "and.u32 %d, %a, %b;",
        "fma.f16 %d, %a, %b, %c;",
        "min.NaN.f32 %d, %a, %b;",
        "setp.foo.s32 %p1, %a, %b;",
        "setp.ltu.s32 %p1, %a, %b;",
        "cvt.f32.f64 %d, %a;",
        "cvt.rni.rn.s32.f32 %d, %a;",
        "cvt.s32.f32 %d, %a;",
        "cvt.rz.bf16.f32 %d, %a;",
        "ex2.f32 %d, %a;",
        "ld.global.v8.f32 %d, [%a];",
        "ld.volatile.global.u32 %d, [%a];",
        "st.global.u64 %d, [%a];",
        "ld.acquire.global.u32 %d, [%a];",
        "ld.acquire.gpu.global.nc.u32 %d, [%a];",
        "st.acquire.gpu.global.u32 [%a], %d;",
        "atom.global.max.u32 %d, [%a], 1;",
        "atom.global.add.b32 %d, [%a], 1;",
        "atom.global.inc.u64 %d, [%a], 1;",
        "fence.acq_rel;",
        "cp.async.cg.shared.global [%a], [%b], 8;",
        "cp.async.bulk.commit_group;",
        "bar.arrive 0, 32;",
        "bar.red.popc.u32 %d, 0, %p1;",
        "shfl.bfly.b32 %d, %a, 1, 31;",
        "match.any.sync.b32 %d, %a, -1;",
        "vote.all.pred %p1, %p2;",
        "shf.l.wrap.b32 %d, %a, %b, %c;",
        "trap;",
        "setp.eq.and.s32 %p1, %a, %b, %p2;",
        "@%p1 call.uni f;",
        "membar;"}) {
    INFO(text);
    const std::string error = what([&] { results(kernel(text), threads(1)); });
    CHECK(has(error, "PTX: unknown instruction: " + std::string(text, std::strlen(text) - 1)));
  }
  using Texts = std::pair<const char*, const char*>;
  for (const Texts& row : {Texts{"add.s32 %d, %x, 1;", "unknown operand '%x'"},
                           {"mov.u32 %d, %clock;", "unknown operand '%clock'"},
                           {"mov.u64 %d, nowhere;", "unknown operand 'nowhere'"},
                           {"bra L9;", "unknown label L9"},
                           {"call.uni nothing;", "unknown call: nothing"},
                           {".callprototype _;", "unknown type 'callprototype'"}}) {
    INFO(row.first);
    CHECK(has(what([&] { results(kernel(row.first), threads(1)); }), row.second));
  }
  CHECK(has(what([] { results(".alias f, g;\n" + kernel(""), threads(1)); }),
            "unknown type 'alias'"));
}
