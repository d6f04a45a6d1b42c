// The kernels of the program: nvcc's registration, the PTX in its fat binaries, and statistics.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>

#include "ptx/module.hpp"
#include "ptx/runtime.hpp"

namespace ptx::runtime {

/// A fat binary: the PTX texts in it that are for the chosen architecture.
struct Binary {
  std::vector<std::string> texts;
  std::vector<std::unique_ptr<Module>> modules;  // parsed at the first launch
};

struct Kernel {
  std::string name;
  Binary* binary = nullptr;
  const Program* program = nullptr;
  std::uint64_t launches = 0, instructions = 0;
};

namespace {

struct Registry {
  std::mutex lock;       // guards this registry
  std::mutex execution;  // runs one kernel at a time: its atomics are steps of one thread
  std::vector<std::unique_ptr<Binary>> binaries;
  std::map<const void*, Kernel> kernels;
  std::unique_ptr<Module> changed;  // BRAID_PTX_READ
};
Registry& registry() {
  static auto* all = new Registry;  // kernels register before main, and end after it
  return *all;
}

// The format of a fat binary, as cuobjdump shows it: a header, then entries, each with a header.
struct Wrapper {
  std::uint32_t magic, version;
  const char* data;
  void* unused;
};
struct Header {
  std::uint32_t magic;
  std::uint16_t version, size;
  std::uint64_t bytes;
};
struct Entry {
  std::uint16_t kind, version;
  std::uint32_t header, payload, payload_high;
  std::uint32_t compressed, unused[2], architecture;
};
constexpr std::uint32_t kWrapperMagic = 0x466243b1, kMagic = 0xba55ed50;

[[noreturn]] void die(const std::string& what) {
  std::cerr << "PTX: " << what << std::endl;
  std::abort();
}

void read_binary(const Wrapper& wrapper, Binary& binary) {
  Header header{};
  std::memcpy(&header, wrapper.data, sizeof header);
  if (wrapper.magic != kWrapperMagic || header.magic != kMagic)
    die("a fat binary of an unknown format");
  const auto wanted = static_cast<std::uint32_t>(std::stoul(setting("BRAID_PTX_ARCH", "90")));
  for (std::uint64_t at = header.size; at < header.size + header.bytes;) {
    Entry entry{};
    std::memcpy(&entry, wrapper.data + at, sizeof entry);
    const char* text = wrapper.data + at + entry.header;
    at += entry.header + entry.payload;
    if (entry.kind != 1) continue;  // 1: PTX
    if (entry.compressed != 0) die("packed PTX: nvcc needs -no-compress");
    if (entry.architecture == wanted) binary.texts.emplace_back(text, strnlen(text, entry.payload));
  }
  const std::string folder = setting("BRAID_PTX_WRITE", "");
  static int number = 0;
  if (!folder.empty())
    for (const std::string& text : binary.texts)
      std::ofstream(folder + "/" + std::to_string(number++) + ".ptx") << text;
}

void write_stats() {
  const std::string file = setting("BRAID_PTX_STATS", "");
  if (file.empty()) return;
  std::ostringstream lines;
  for (const auto& [function, kernel] : registry().kernels)
    lines << kernel.name << ' ' << kernel.launches << ' ' << kernel.instructions << '\n';
  std::ofstream(file, std::ios::app) << lines.str() << std::flush;
}

Launch launch_of(dim3 grid, dim3 block, std::size_t shared) {
  static const std::string order = setting("BRAID_PTX_ORDER", "forward");
  Launch launch{
      {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, static_cast<unsigned>(shared)};
  if (order == "reverse") launch.order = Order::reverse;
  else if (order.rfind("random", 0) == 0)
    launch.order = Order::random,
    launch.seed = order.size() > 7 ? static_cast<std::uint32_t>(std::stoul(order.substr(7))) : 1;
  else if (order != "forward")
    die("BRAID_PTX_ORDER: expected forward, reverse or random[:seed], got " + order);
  return launch;
}

}  // namespace

std::string setting(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}

Kernel* find_kernel(const void* function) {
  const std::lock_guard held(registry().lock);
  const auto it = registry().kernels.find(function);
  return it == registry().kernels.end() ? nullptr : &it->second;
}

cudaError_t prepare(Kernel& kernel) {
  Registry& r = registry();
  const std::lock_guard held(r.lock);
  if (kernel.program != nullptr) return cudaSuccess;
  try {
    const std::string file = setting("BRAID_PTX_READ", "");
    if (!file.empty() && !r.changed) {
      std::ostringstream text;
      text << std::ifstream(file).rdbuf();
      r.changed = std::make_unique<Module>(text.str());
    }
    if (r.changed && r.changed->kernels().count(kernel.name) != 0) {
      kernel.program = &r.changed->kernel(kernel.name);
      return cudaSuccess;
    }
    Binary& binary = *kernel.binary;
    while (binary.modules.size() < binary.texts.size())
      binary.modules.push_back(std::make_unique<Module>(binary.texts[binary.modules.size()]));
    for (const auto& module : binary.modules)
      if (module->kernels().count(kernel.name) != 0) kernel.program = &module->kernel(kernel.name);
    if (kernel.program != nullptr) return cudaSuccess;
    std::cerr << "PTX: the program has no PTX of this architecture for " << kernel.name
              << std::endl;
    return cudaErrorNoKernelImageForDevice;
  } catch (const Error& e) {
    std::cerr << e.what() << " in " << kernel.name << std::endl;
    return cudaErrorInvalidPtx;
  }
}

std::vector<std::size_t> parameter_sizes(const Kernel& kernel) {
  std::vector<std::size_t> sizes;
  for (const Parameter& p : kernel.program->parameters) sizes.push_back(p.size);
  return sizes;
}

void execute(Kernel& kernel, int device, dim3 grid, dim3 block, std::size_t shared,
             void** arguments) {
  const std::lock_guard held(registry().execution);
  try {
    kernel.instructions += run(*kernel.program, launch_of(grid, block, shared), arguments);
    ++kernel.launches;
  } catch (const Error& e) {
    std::cerr << "PTX: " << e.what() << std::endl;
    lose(device, cudaErrorIllegalAddress);
  }
}

}  // namespace ptx::runtime

using namespace ptx::runtime;

extern "C" {

void** __cudaRegisterFatBinary(void* data) {
  const std::lock_guard held(registry().lock);
  if (registry().binaries.empty()) std::atexit(write_stats);
  auto binary = std::make_unique<Binary>();
  read_binary(*static_cast<const Wrapper*>(data), *binary);
  registry().binaries.push_back(std::move(binary));
  return reinterpret_cast<void**>(registry().binaries.back().get());
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 0; }
void __cudaRegisterFunction(void** binary, const char* function, char*, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*) {
  const std::lock_guard held(registry().lock);
  Kernel& kernel = registry().kernels[function];
  kernel.name = name;
  kernel.binary = reinterpret_cast<Binary*>(binary);
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute, int) {
  return find_kernel(function) != nullptr ? cudaSuccess : failed(cudaErrorInvalidDeviceFunction);
}
}
