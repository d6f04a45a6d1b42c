#include "cpu/runtime/isa.hpp"

#include <cstdlib>

#include <braid/core/error.hpp>
#include <braid/kernels/isa.hpp>

namespace braid::cpu {

namespace {

std::string names(bool supported_only) {
  std::string text;
  for (const Isa& isa : compiled_isas())
    if (!supported_only || isa.supported()) text += str(text.empty() ? "" : ", ", isa.name);
  return text;
}

}  // namespace

const Isa& choose_isa(const char* forced) {
  const bool free = forced == nullptr || *forced == '\0';
  const Isa* best = nullptr;
  for (const Isa& isa : compiled_isas()) {
    if (!free && isa.name != forced) continue;
    if (isa.supported()) {
      best = &isa;
    } else if (!free) {
      throw DeviceError(
          str("BRAID_ISA: expected an instruction set that this processor has, one of ",
              names(true), ", got ", isa.name));
    }
  }
  if (best == nullptr)
    throw DeviceError(str("BRAID_ISA: expected one of ", names(false), ", got '",
                          std::string_view(forced).substr(0, 64), "'"));
  return *best;
}

const Isa& current_isa() {
  static const Isa& isa = choose_isa(std::getenv("BRAID_ISA"));
  return isa;
}

}  // namespace braid::cpu

namespace braid::kernels {

std::string_view isa_name() { return cpu::current_isa().name; }

std::vector<std::string_view> isa_names() {
  std::vector<std::string_view> list;
  for (const cpu::Isa& isa : cpu::compiled_isas())
    if (isa.supported()) list.push_back(isa.name);
  return list;
}

}  // namespace braid::kernels
