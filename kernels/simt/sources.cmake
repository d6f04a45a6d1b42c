# The sources of the emulation and of the host twin of the CUDA runtime; paths from the folder kernels. Never instrumented.
set(BRAID_SIMT_SOURCES
  # the emulation

  # the host twin of the CUDA runtime

)
