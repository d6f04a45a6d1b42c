#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// PTX, NVIDIA's virtual instruction set, as an interpreter runs it: what nvcc generates from a
// kernel, with nvcc's contraction, addressing and unrolling. "The manual" is NVIDIA's PTX ISA.
namespace ptx {

/// PTX that the interpreter does not know, or a kernel that does something invalid.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Space : std::uint8_t { generic, global, shared, local, param };

/// The operations of a whole warp on matrices: ldmatrix and mma.
enum class MatrixOp : std::uint8_t { none, load, multiply };

struct Thread;
struct Instruction;
/// What follows an instruction: the next one, the one at Thread::pc, other threads, or nothing.
enum class Next : std::uint8_t { go_on, jump, wait, leave };
using Run = Next (*)(Thread&, const Instruction&);

/// One instruction. Operands are register numbers. Constants have their own registers, and register
/// 0 is always 0.
struct Instruction {
  Run run = nullptr;
  int guard = -1;       ///< runs only if this predicate is set …
  bool unless = false;  ///< … or not set
  int d = 0, a = 0, b = 0, c = 0, e = 0;
  std::array<int, 4> lane{};  ///< the registers of a vector
  int lanes = 0;
  unsigned modifiers = 0;
  int kind = 0;  ///< which variant: comparison, atomic operation, shuffle
  Space space = Space::generic;
  std::int64_t offset = 0, source_offset = 0;
  int target = 0;  ///< of a branch
  MatrixOp matrix = MatrixOp::none;
  std::shared_ptr<const std::vector<int>> list;  ///< the registers of a matrix operation, in order
};

struct Parameter {
  unsigned offset, size;
};
/// The registers that hold the indices of a thread.
struct Place {
  std::array<int, 3> tid, ntid, ctaid, nctaid;
  int laneid;
};
/// A kernel, ready to run.
struct Program {
  std::string name;
  std::vector<Instruction> code;
  std::vector<std::string> lines;  ///< the text of each instruction
  int registers = 1;
  std::vector<std::pair<int, std::uint64_t>> constants;
  std::vector<Parameter> parameters;
  unsigned parameter_bytes = 0, shared_bytes = 0, local_bytes = 0;
  unsigned most_threads = 1024;  ///< of a block: .maxntid, from __launch_bounds__
  int dynamic_shared = -1;       ///< the register that holds the start of dynamic shared memory
  Place place{};
};

/// A cp.async in flight.
struct Copy {
  std::uint64_t to, from;
  unsigned bytes, taken;  ///< the rest of the bytes becomes zero
  int group;
};
enum class State : std::uint8_t { runs, at_barrier, in_warp, over };
struct Window {
  char* data;
  unsigned bytes;
};
struct Thread {
  std::uint64_t* r;
  int pc, index;
  bool carry;
  State state;
  std::uint32_t mask;     ///< the lanes that it synchronizes with
  int barrier, arrivals;  ///< which barrier, and how many threads it waits for (-1: all)
  Window shared, local, param;
  int group;
  std::uint32_t acquired;  ///< how many ld.acquire it has executed
  std::vector<Copy> copies;
};

/// Returns whether the device's memory may be read or written there. Set by the runtime. If null,
/// every access is allowed.
extern bool (*allows)(std::uint64_t address, std::size_t bytes, bool write);
/// Returns the memory of an address. Throws Error if it is outside or not aligned to `bytes`.
char* locate(const Thread& t, Space space, std::uint64_t address, unsigned bytes, bool write);
/// Completes the copies of groups before `group`.
void land(Thread& t, int group);

struct Dim {
  unsigned x, y, z;
};
/// The order in which the threads of a block, and the blocks, run.
enum class Order : std::uint8_t { forward, reverse, random };
struct Launch {
  Dim grid, block;
  unsigned dynamic_shared = 0;
  Order order = Order::forward;
  std::uint32_t seed = 1;
};
/// Runs a grid to completion. The arguments point to the values. Returns the number of
/// instructions.
std::uint64_t run(const Program& program, const Launch& launch, void** arguments);

}  // namespace ptx
