# The sources of the emulation of kernels and of the CUDA runtime. Paths are relative to the folder
# kernels. They are never instrumented.
set(BRAID_SIMT_SOURCES
  # the emulation of kernels
  simt/arena.cpp
  simt/block_order.cpp
  simt/checker.cpp
  simt/checker_find.cpp
  simt/checker_ops.cpp
  simt/checker_report.cpp
  simt/config.cpp
  simt/device.cpp
  simt/device_memory.cpp
  simt/error.cpp
  simt/fiber.cpp
  simt/grid.cpp
  simt/memory_map.cpp
  simt/op_sets.cpp
  simt/profiler.cpp
  simt/scheduler.cpp
  simt/signals.cpp
  simt/symbols.cpp
  simt/trace.cpp
  simt/tsan_abi.cpp
  simt/warp.cpp

  # the fake NCCL
  simt/nccl/collectives.cpp
  simt/nccl/faults.cpp
  simt/nccl/stand_in.cpp

  # the emulation of the CUDA runtime
  simt/runtime/copies.cpp
  simt/runtime/devices.cpp
  simt/runtime/error_names.cpp
  simt/runtime/events.cpp
  simt/runtime/executor.cpp
  simt/runtime/history.cpp
  simt/runtime/injection.cpp
  simt/runtime/launches.cpp
  simt/runtime/mapping.cpp
  simt/runtime/memory.cpp
  simt/runtime/memory_calls.cpp
  simt/runtime/reports.cpp
  simt/runtime/runtime.cpp
  simt/runtime/streams.cpp
  simt/runtime/watches.cpp
)
