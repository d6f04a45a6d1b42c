#include <cstring>

#include <braid/core/error.hpp>

#include "simt/cuda_runtime.hpp"
#include "simt/runtime/state.hpp"

using namespace braid::simt;
using braid::str;
using detail::Access;
using detail::AllocationPtr;
using detail::Op;
using detail::OpPtr;
using detail::Place;
using detail::Runtime;
using detail::runtime_call;

namespace {

struct Copy {
  const char* call;
  void* to;
  const void* from;
  std::size_t to_pitch, from_pitch, width, height;
  cudaMemcpyKind kind;
  int to_device = -1, from_device = -1;  // of a peer copy
  bool blocking;
  [[nodiscard]] bool peer() const { return to_device >= 0; }
};

// The destination or the source of a copy.
struct Side {
  char* p = nullptr;
  std::size_t pitch = 0;
  AllocationPtr allocation;
  Place place = Place::pageable;
  [[nodiscard]] char* row(std::size_t i) const { return p + i * pitch; }
};

// Checks the memory that a call uses. Returns cudaSuccess if it is valid. Under the lock.
cudaError_t check_side(Runtime& r, const char* call, Side& side, std::size_t width,
                       std::size_t height, int device, bool peer, Location where) {
  const std::size_t span = (height - 1) * side.pitch + width;
  side.allocation = r.memory.find_allocation(side.p);
  if (const detail::Gone* gone = side.allocation ? nullptr : r.memory.find_gone(side.p)) {
    r.reports.add(ReportKind::use_after_free, device, where, gone->freed_where,
                  str(call, " at ", detail::describe(where), ": after ", gone->free_call, " at ",
                      detail::describe(gone->freed_where), ", uses memory from ", gone->call,
                      " at ", detail::describe(gone->where), " (", gone->bytes, " bytes)"));
    return cudaErrorInvalidValue;
  }
  if (!side.allocation) return cudaSuccess;
  const detail::Allocation& a = *side.allocation;
  side.place = a.place;
  const auto wrong = [&](ReportKind kind, Location other, const std::string& why,
                         cudaError_t code) {
    r.reports.add(kind, device, where, other,
                  str(call, " at ", detail::describe(where), ": ", why, " memory from ", a.call,
                      " at ", detail::describe(a.where), " (", a.bytes, " bytes)"));
    return code;
  };
  if (a.freed && !a.free_op)
    return wrong(ReportKind::use_after_free, a.freed_where,
                 str("after ", a.free_call, " at ", detail::describe(a.freed_where), ", uses"),
                 cudaErrorInvalidValue);
  const auto offset = static_cast<std::size_t>(side.p - a.base);
  if (offset > a.bytes || span > a.bytes - offset)
    return wrong(ReportKind::out_of_bounds, a.where,
                 str(span, " bytes from offset ", offset, " run past the end of"),
                 cudaErrorInvalidValue);
  if (a.place == Place::device && a.device != device && !peer &&
      !r.memory.of(device).peers.contains(a.device))
    return wrong(
        ReportKind::wrong_device, a.where,
        str("a stream of cuda:", device, " without peer access touches cuda:", a.device, "'s"),
        cudaErrorPeerAccessNotEnabled);
  return cudaSuccess;
}

cudaError_t check_kind(Runtime& r, const Copy& copy, const Side& to, const Side& from, int device,
                       Location where) {
  const bool to_device =
      copy.kind == cudaMemcpyHostToDevice || copy.kind == cudaMemcpyDeviceToDevice;
  const bool from_device =
      copy.kind == cudaMemcpyDeviceToHost || copy.kind == cudaMemcpyDeviceToDevice;
  if (copy.kind == cudaMemcpyDefault) return cudaSuccess;
  const auto fits = [](const Side& side, bool wanted) {
    return side.place == Place::pinned || (side.place == Place::device) == wanted;
  };
  static constexpr const char* kPlaces[] = {"pageable host", "pinned host", "device"};
  const auto wrong = [&](const char* end, bool wanted, const Side& side) {
    r.reports.add(ReportKind::wrong_kind, device, where,
                  side.allocation ? side.allocation->where : Location{},
                  str(copy.call, " at ", detail::describe(where), ": ", end, ": expected ",
                      wanted ? "device" : "host", " memory, got ",
                      kPlaces[static_cast<std::size_t>(side.place)], " memory"));
    return cudaErrorInvalidValue;
  };
  if (!fits(to, to_device)) return wrong("destination", to_device, to);
  if (!fits(from, from_device)) return wrong("source", from_device, from);
  return cudaSuccess;
}

// True if a row of one side shares bytes with a row of the other. Rows may be interleaved without
// sharing bytes.
bool overlap(const Side& to, const Side& from, std::size_t width, std::size_t height) {
  for (std::size_t i = 0; i < height; ++i) {
    const std::ptrdiff_t ahead = (to.row(i) - from.p) / static_cast<std::ptrdiff_t>(from.pitch);
    for (std::ptrdiff_t j = ahead - 1; j <= ahead + 1; ++j) {
      if (j < 0 || j >= static_cast<std::ptrdiff_t>(height)) continue;
      const char* const row = from.row(static_cast<std::size_t>(j));
      if (row < to.row(i) + width && to.row(i) < row + width) return true;
    }
  }
  return false;
}

// Moves the bytes. Runs in the executor.
void run_copy(Runtime& r, Op& op, const Side& to, const Side& from, std::size_t width,
              std::size_t height) {
  bool fine = true;
  {
    const Runtime::Lock lock(r.mutex);
    const OpPtr self = op.shared_from_this();
    r.check_watches(self);
    for (std::size_t i = 0; i < height && fine; ++i) {
      if (from.allocation) fine = r.touch(self, from.allocation, from.row(i), width, Access::read);
      if (fine && to.allocation)
        fine = r.touch(self, to.allocation, to.row(i), width, Access::write);
    }
  }
  if (fine) {
    r.ask_checker(op, [&] {
      for (std::size_t i = 0; i < height; ++i) {
        if (from.allocation && to.allocation) check_copy(to.row(i), from.row(i), width);
        else if (from.allocation) check_range(from.row(i), width, false);
        else if (to.allocation) check_range(to.row(i), width, true);
      }
    });
  }
  for (std::size_t i = 0; i < height; ++i) std::memmove(to.row(i), from.row(i), width);
}

cudaError_t queue_copy(Runtime& r, const Copy& copy, cudaStream_t handle, Location where) {
  if (copy.kind < cudaMemcpyHostToHost || copy.kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  if (copy.width > copy.to_pitch || copy.width > copy.from_pitch) return cudaErrorInvalidPitchValue;
  OpPtr op, before;
  bool wait = false;
  int device = 0;
  {
    Runtime::Lock lock(r.mutex);
    const auto stream = r.find_stream(handle, copy.call, where);
    if (!stream) return cudaErrorInvalidResourceHandle;
    device = stream->device;
    if (const cudaError_t error = r.forbidden_work(*stream); error != cudaSuccess) return error;
    if (copy.blocking)
      if (const cudaError_t error = r.forbidden_while_capturing(); error != cudaSuccess)
        return error;
    if (copy.width == 0 || copy.height == 0) return cudaSuccess;
    if (!copy.to || !copy.from) return cudaErrorInvalidValue;
    Side to{static_cast<char*>(copy.to), copy.to_pitch, nullptr, Place::pageable};
    Side from{static_cast<char*>(const_cast<void*>(copy.from)), copy.from_pitch, nullptr,
              Place::pageable};
    if (const cudaError_t e =
            check_side(r, copy.call, to, copy.width, copy.height, device, copy.peer(), where);
        e != cudaSuccess)
      return e;
    if (const cudaError_t e =
            check_side(r, copy.call, from, copy.width, copy.height, device, copy.peer(), where);
        e != cudaSuccess)
      return e;
    if (const cudaError_t e = check_kind(r, copy, to, from, device, where); e != cudaSuccess)
      return e;
    if (copy.peer()) {
      const auto fits = [](const Side& side, int wanted) {
        return side.place == Place::device && side.allocation->device == wanted;
      };
      if (!fits(to, copy.to_device) || !fits(from, copy.from_device)) {
        r.reports.add(ReportKind::wrong_device, device, where, {},
                      str(copy.call, " at ", detail::describe(where), ": expected memory of cuda:",
                          copy.to_device, " and cuda:", copy.from_device, ", got other memory"));
        return cudaErrorInvalidValue;
      }
    }
    if (overlap(to, from, copy.width, copy.height)) {
      r.reports.add(ReportKind::overlap, device, where,
                    to.allocation ? to.allocation->where : Location{},
                    str(copy.call, " at ", detail::describe(where),
                        ": expected source and destination apart, got ranges of ", copy.width,
                        " bytes that overlap"));
      return cudaErrorInvalidValue;
    }
    const bool host_only = to.place != Place::device && from.place != Place::device;
    std::shared_ptr<std::vector<char>> staged;
    // a graph reads its source at every launch
    if (!stream->capture && from.place == Place::pageable && to.place != Place::pageable) {
      staged = std::make_shared<std::vector<char>>(copy.width * copy.height);
      for (std::size_t i = 0; i < copy.height; ++i)
        std::memcpy(staged->data() + i * copy.width, from.row(i), copy.width);
      from.p = staged->data();
      from.pitch = copy.width;
    }
    if (copy.blocking && staged) before = stream->last;
    const std::size_t width = copy.width, height = copy.height;
    op = r.enqueue(*stream, detail::OpKind::copy, copy.call, where,
                   [&r, to, from, staged, width, height,
                    peer = copy.peer() && copy.to_device != copy.from_device](Op& self) {
                     run_copy(r, self, to, from, width, height);
                     if (peer && r.injection.peer_wrong) to.row(height / 2)[width / 2] ^= 1;
                   });
    const auto queued = [&r, to, from, width, height](const OpPtr& self) {
      for (std::size_t i = 0; i < height; ++i) {
        if (from.place == Place::pinned) r.watch(self, from.allocation, from.row(i), width, false);
        if (to.place == Place::pinned) r.watch(self, to.allocation, to.row(i), width, true);
      }
    };
    if (stream->capture) {
      op->queued = queued;
      return cudaSuccess;
    }
    queued(op);
    // What is synchronous with the host, according to CUDA's documentation: copies to pageable
    // memory and within the host, always; blocking calls, except copies with a staged source and
    // copies within device memory that are not peer copies.
    const bool within_devices = to.place == Place::device && from.place == Place::device;
    wait = to.place == Place::pageable || host_only ||
           (copy.blocking && ((!within_devices && !staged) || copy.peer()));
  }
  const OpPtr awaited = wait ? op : before;
  if (awaited) {
    r.run_until(awaited);
    const Runtime::Lock lock(r.mutex);
    r.learn(awaited->clock);
    return r.reports.sticky_of(device);
  }
  r.settle();
  return cudaSuccess;
}

cudaError_t queue_memset(const char* call, void* pointer, int value, std::size_t bytes,
                         cudaStream_t handle, bool blocking, Location where) {
  return runtime_call(call, [&](Runtime& r) {
    OpPtr op;
    int device = 0;
    bool wait = false;
    {
      const Runtime::Lock lock(r.mutex);
      const auto stream = r.find_stream(handle, call, where);
      if (!stream) return cudaErrorInvalidResourceHandle;
      device = stream->device;
      if (const cudaError_t error = r.forbidden_work(*stream); error != cudaSuccess) return error;
      if (bytes == 0) return cudaSuccess;
      if (!pointer) return cudaErrorInvalidValue;
      Side to{static_cast<char*>(pointer), bytes, nullptr, Place::pageable};
      if (const cudaError_t e = check_side(r, call, to, bytes, 1, device, false, where);
          e != cudaSuccess)
        return e;
      if (to.place == Place::pageable) {
        r.reports.add(ReportKind::wrong_kind, device, where, {},
                      str(call, " at ", detail::describe(where),
                          ": expected device memory, got pageable host memory"));
        return cudaErrorInvalidValue;
      }
      op =
          r.enqueue(*stream, detail::OpKind::memset, call, where, [&r, to, value, bytes](Op& self) {
            bool fine = false;
            {
              const Runtime::Lock runs(r.mutex);
              r.check_watches(self.shared_from_this());
              fine = r.touch(self.shared_from_this(), to.allocation, to.p, bytes, Access::write);
            }
            if (fine) r.ask_checker(self, [&] { check_range(to.p, bytes, true); });
            std::memset(to.p, value, bytes);
          });
      const auto queued = [&r, to, bytes](const OpPtr& self) {
        if (to.place == Place::pinned) r.watch(self, to.allocation, to.p, bytes, true);
      };
      if (stream->capture) {
        op->queued = queued;
        return cudaSuccess;
      }
      queued(op);
      wait = blocking && to.place == Place::pinned;
    }
    if (wait) {
      r.run_until(op);
      const Runtime::Lock lock(r.mutex);
      r.learn(op->clock);
      return r.reports.sticky_of(device);
    }
    r.settle();
    return cudaSuccess;
  });
}

cudaError_t flat(const char* call, void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind, cudaStream_t stream, bool blocking, Location where) {
  return runtime_call(call, [&](Runtime& r) {
    return queue_copy(r, Copy{call, to, from, bytes, bytes, bytes, 1, kind, -1, -1, blocking},
                      stream, where);
  });
}

cudaError_t peer(const char* call, void* to, int to_device, const void* from, int from_device,
                 std::size_t bytes, cudaStream_t stream, bool blocking, Location where) {
  return runtime_call(call, [&](Runtime& r) {
    const auto known = [&](int device) {
      return device >= 0 && device < static_cast<int>(r.device_count());
    };
    if (!known(to_device) || !known(from_device)) return cudaErrorInvalidDevice;
    if (blocking) {
      {
        const Runtime::Lock lock(r.mutex);
        for (const int device : {to_device, from_device})
          if (const cudaError_t error = r.forbidden_wait(device); error != cudaSuccess)
            return error;
      }
      r.synchronize_device(to_device), r.synchronize_device(from_device);
    }
    return queue_copy(r,
                      Copy{call, to, from, bytes, bytes, bytes, 1, cudaMemcpyDeviceToDevice,
                           to_device, from_device, blocking},
                      stream, where);
  });
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       Location where) {
  return flat("cudaMemcpy", to, from, bytes, kind, nullptr, true, where);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream, Location where) {
  return flat("cudaMemcpyAsync", to, from, bytes, kind, stream, false, where);
}
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           std::size_t bytes, Location where) {
  return peer("cudaMemcpyPeer", to, to_device, from, from_device, bytes, nullptr, true, where);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t stream, Location where) {
  return peer("cudaMemcpyPeerAsync", to, to_device, from, from_device, bytes, stream, false, where);
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind,
                         Location where) {
  return runtime_call("cudaMemcpy2D", [&](Runtime& r) {
    return queue_copy(
        r, Copy{"cudaMemcpy2D", to, from, to_pitch, from_pitch, width, height, kind, -1, -1, true},
        nullptr, where);
  });
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream, Location where) {
  return runtime_call("cudaMemcpy2DAsync", [&](Runtime& r) {
    return queue_copy(r,
                      Copy{"cudaMemcpy2DAsync", to, from, to_pitch, from_pitch, width, height, kind,
                           -1, -1, false},
                      stream, where);
  });
}
cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes, Location where) {
  return queue_memset("cudaMemset", pointer, value, bytes, nullptr, true, where);
}
cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t stream,
                            Location where) {
  return queue_memset("cudaMemsetAsync", pointer, value, bytes, stream, false, where);
}
