#pragma once
#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// A CUDA runtime whose devices are threads of this program and whose kernels are PTX. It has what
// Braid's backend and nvcc's own launch code call; what it lacks does not link, and what it cannot
// do it refuses with an error code and a line that begins with PTX.
//
//   BRAID_PTX_DEVICES=n       devices (1)
//   BRAID_PTX_MEMORY=MiB      memory of each (2048)
//   BRAID_PTX_ARCH=80|90      which PTX of a program runs (90)
//   BRAID_PTX_ORDER=forward|reverse|random[:seed]   of threads and blocks
//   BRAID_PTX_WRITE=folder    writes the PTX of the program there, <n>.ptx
//   BRAID_PTX_READ=file       takes kernels from there where it has them (a changed text)
//   BRAID_PTX_STATS=file      at the end one line a kernel: name, launches, instructions
namespace ptx::runtime {

/// What a stream has reached.
struct Ticket {
  bool over = false;
  std::chrono::steady_clock::time_point time;
};
/// All streams and events share one lock: there are few of them.
struct Clock {
  std::mutex lock;
  std::condition_variable changed;
};
Clock& clock();
void finish(Ticket& ticket);
bool is_over(const Ticket& ticket);
void wait_for(const Ticket& ticket);

/// Carries out what is queued, in order, on a thread of its own.
class Stream {
 public:
  Stream(int device, unsigned flags);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] int device() const { return device_; }
  /// What the stream was created with; no default stream is there to wait for.
  [[nodiscard]] unsigned flags() const { return flags_; }
  std::shared_ptr<Ticket> queue(std::function<void()> work);
  [[nodiscard]] std::shared_ptr<Ticket> last();

 private:
  void work();
  const int device_;
  const unsigned flags_;
  std::shared_ptr<Ticket> last_;
  std::deque<std::pair<std::function<void()>, std::shared_ptr<Ticket>>> queue_;
  bool ends_ = false;
  std::thread thread_;
};

/// The device of the calling thread, and its error that nothing ends.
int current();
int device_count();
cudaError_t lost(int device);
void lose(int device, cudaError_t why);
/// Remembers an error for cudaGetLastError.
cudaError_t failed(cudaError_t error);
/// Waits for all streams of a device.
void settle(int device);

/// Whether device or pinned memory is there; a copy from other memory is done within the call.
bool is_known(const void* address);

/// A kernel by the address of its host function.
struct Kernel;
Kernel* find_kernel(const void* function);
/// Parses it: cudaErrorInvalidPtx, with a line that says why.
cudaError_t prepare(Kernel& kernel);
/// Runs it in the calling thread.
void execute(Kernel& kernel, int device, dim3 grid, dim3 block, std::size_t shared,
             void** arguments);
std::vector<std::size_t> parameter_sizes(const Kernel& kernel);
/// Text of the environment, or the default.
std::string setting(const char* name, const char* otherwise);

}  // namespace ptx::runtime
