#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "ptx/program.hpp"

// Decodes the text of an instruction to the function that runs it. Any part of an opcode that the
// decoder has not consumed is an Error, so an unknown form is never taken for a known one.
namespace ptx {

enum Modifier : unsigned {
  ftz = 1,
  sat = 2,
  rz = 4,
  rm = 8,
  rp = 16,
  cc = 32,
  rni = 64,
  rzi = 128,
  rmi = 256,
  rpi = 512
};

/// Resolves the operands in a kernel's text.
class Names {
 public:
  virtual ~Names() = default;
  /// Returns the register for a register name, a constant, or a variable's address; -1 for _.
  virtual int value(std::string_view operand) = 0;
  /// Sets the target of the present instruction to a label. Labels are resolved at the end.
  virtual void branch(std::string_view label) = 0;
};

/// An instruction that is being decoded.
struct Line {
  std::string text, opcode;
  std::vector<std::string> parts, operands;
  Names& names;
  Instruction i;

  /// Removes the part and returns true if it is there.
  bool take(std::string_view part);
  /// As take, but throws Error if the part is not there.
  void expect(std::string_view part);
  /// Removes the part that is there and returns its index. Throws Error if there is none.
  int one_of(std::initializer_list<const char*> choices);
  /// Removes and returns the last part: a type.
  std::string type();
  /// Decodes the modifiers of floating-point arithmetic.
  void rounding();
  /// Decodes the operands d, a, b, c, e. There must be exactly `count`.
  void registers(std::size_t count);
  void count(std::size_t least, std::size_t most);
  int value(std::size_t operand) { return names.value(operands.at(operand)); }
  /// [name + offset]: returns the register and sets the offset.
  int address(std::size_t operand, std::int64_t& offset);
  /// Decodes {d, e, …}. Returns false if the operand is not a vector.
  bool vector(std::size_t operand);
  /// d|p: removes p from the operand and returns its register, or -1 if there is none.
  int second(std::string& operand);
  [[noreturn]] void unknown() const { throw Error("PTX: unknown instruction: " + text); }
};
using Decode = void (*)(Line&);
using Decoders = std::unordered_map<std::string_view, Decode>;
const Decoders& arithmetic_decoders();
const Decoders& conversion_decoders();
const Decoders& memory_decoders();
const Decoders& thread_decoders();
const Decoders& matrix_decoders();
/// Finds the decoder of a line's opcode and calls it.
void decode(Line& line);

/// A sum or a difference with a product a b, rounded once: a b + c, a b - c, or c - a b.
enum class Fused { sum, product_first, product_last };
/// Returns what computes it in float64 if `wide`, else in float32.
Run fused(Fused form, bool wide);

// ---- registers
template <class T> T get(std::uint64_t bits) {
  if constexpr (std::is_floating_point_v<T>) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  } else {
    return static_cast<T>(bits);
  }
}
template <class T> std::uint64_t put(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  } else {
    return static_cast<std::uint64_t>(value);  // signs are extended
  }
}

// ---- types
template <class V, char letter> struct Type {
  using T = V;
  static bool is(std::string_view name) {
    return name.size() > 1 && name[0] == letter && name.substr(1) == std::to_string(8 * sizeof(V));
  }
};
template <class... T> struct Types {};
template <class... A, class... B> Types<A..., B...> operator|(Types<A...>, Types<B...>) {
  return {};
}
using Unsigned =
    Types<Type<std::uint16_t, 'u'>, Type<std::uint32_t, 'u'>, Type<std::uint64_t, 'u'>>;
using Signed = Types<Type<std::int16_t, 's'>, Type<std::int32_t, 's'>, Type<std::int64_t, 's'>>;
using Bits = Types<Type<std::uint16_t, 'b'>, Type<std::uint32_t, 'b'>, Type<std::uint64_t, 'b'>>;
using Bytes = Types<Type<std::uint8_t, 'u'>, Type<std::int8_t, 's'>, Type<std::uint8_t, 'b'>>;
using Floats = Types<Type<float, 'f'>, Type<double, 'f'>>;
using Narrow = Types<Type<std::uint16_t, 'u'>, Type<std::int16_t, 's'>, Type<std::uint32_t, 'u'>,
                     Type<std::int32_t, 's'>>;
using Integers = decltype(Unsigned{} | Signed{});
using Numbers = decltype(Integers{} | Floats{});
using All = decltype(Numbers{} | Bits{});

/// Returns Op::run<T> for the type of that name, or nullptr if it is none of these.
template <class Op, class... T> Run pick(std::string_view name, Types<T...>) {
  Run found = nullptr;
  ((found = T::is(name) ? &Op::template run<typename T::T> : found), ...);
  return found;
}

}  // namespace ptx
