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

// A CUDA runtime whose devices are threads of this program and whose kernels are PTX. It has the
// functions that Braid's backend and nvcc's launch code call. Other calls do not link. What it
// cannot do, it refuses with an error code and a message that begins with PTX.
//
//   BRAID_PTX_DEVICES=n       number of devices (1)
//   BRAID_PTX_MEMORY=MiB      memory of each device (2048)
//   BRAID_PTX_ARCH=80|90      which PTX of a program runs (90)
//   BRAID_PTX_ORDER=forward|reverse|random[:seed]   order of threads and blocks
//   BRAID_PTX_WRITE=folder    writes the PTX of the program to <n>.ptx in the folder
//   BRAID_PTX_READ=file       uses the kernels of this file instead, if it has them (changed PTX)
//   BRAID_PTX_STATS=file      at exit appends a line per kernel: name, launches, instructions
namespace ptx::runtime {

/// A point in the queue of a stream.
struct Ticket {
  bool over = false;
  std::chrono::steady_clock::time_point time;
};
/// The lock of all streams and events: there are few of them.
struct Clock {
  std::mutex lock;
  std::condition_variable changed;
};
Clock& clock();
void finish(Ticket& ticket);
bool is_over(const Ticket& ticket);
void wait_for(const Ticket& ticket);

/// Runs what is queued, in order, on its own thread.
class Stream {
 public:
  Stream(int device, unsigned flags);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] int device() const { return device_; }
  /// The flags that the stream was created with. There is no default stream that it could wait for.
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

/// The device of the calling thread; lost() is a device's error, which nothing clears.
int current();
int device_count();
cudaError_t lost(int device);
void lose(int device, cudaError_t why);
/// Records an error for cudaGetLastError.
cudaError_t failed(cudaError_t error);
/// Waits for all streams of a device.
void settle(int device);

/// Returns true for device or pinned memory. A copy from or to other memory is done within the
/// call.
bool is_known(const void* address);

/// A kernel, found by the address of its host function.
struct Kernel;
Kernel* find_kernel(const void* function);
/// Parses the kernel. Returns cudaErrorInvalidPtx and prints the reason if that fails, or
/// cudaErrorNoKernelImageForDevice if the program has no PTX for it.
cudaError_t prepare(Kernel& kernel);
/// Runs the kernel on the calling thread.
void execute(Kernel& kernel, int device, dim3 grid, dim3 block, std::size_t shared,
             void** arguments);
std::vector<std::size_t> parameter_sizes(const Kernel& kernel);
/// Returns an environment variable, or the default.
std::string setting(const char* name, const char* otherwise);

}  // namespace ptx::runtime
