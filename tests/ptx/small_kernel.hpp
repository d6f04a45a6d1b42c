#pragma once
#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ptx/module.hpp"
#include "support/check.hpp"

namespace ptx_test {

inline std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

/// Returns a kernel with registers %a … %e, %r0 … %r7, %p0 … %p3 and a pointer %out. `before` is
/// put in front of it.
inline std::string kernel(const std::string& body, const std::string& before = "") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + before +
         ".visible .entry k(.param .u64 k_out, .param .u64 k_a, .param .u64 k_b, .param .u64 k_c)\n"
         "{\n.reg .pred %p<4>;\n.reg .b64 %a, %b, %c, %d, %e, %out;\n.reg .b32 %r<8>;\n"
         "ld.param.u64 %out, [k_out];\nld.param.u64 %a, [k_a];\nld.param.u64 %b, [k_b];\n"
         "ld.param.u64 %c, [k_c];\nmov.u64 %d, 0;\nmov.u64 %e, 0;\n" +
         body + "\nret;\n}\n";
}

/// Runs the kernel and returns what the threads write to out, one number each.
inline std::vector<std::uint64_t> results(const std::string& text, ptx::Launch launch,
                                          std::vector<std::uint64_t> numbers = {0, 0, 0},
                                          decltype(ptx::allows) allows = nullptr) {
  ptx::Module module(text);
  std::vector<std::uint64_t> out(launch.grid.x * launch.block.x);
  auto* pointer = out.data();
  numbers.resize(3);
  void* arguments[] = {&pointer, &numbers[0], &numbers[1], &numbers[2]};
  // host memory, which the runtime of other tests in this program does not know
  const auto before = std::exchange(ptx::allows, allows);
  const auto end = [&](void*) { ptx::allows = before; };
  const std::unique_ptr<void, decltype(end)> at_end(&module, end);
  ptx::run(module.kernel("k"), launch, arguments);
  return out;
}
/// Computes the address of this thread's number.
inline const std::string kMine = "mov.u32 %r0, %tid.x;\nmad.wide.u32 %out, %r0, 8, %out;\n";
inline ptx::Launch threads(unsigned count, ptx::Order order = ptx::Order::forward) {
  return {{1, 1, 1}, {count, 1, 1}, 0, order, 1};
}

}  // namespace ptx_test
