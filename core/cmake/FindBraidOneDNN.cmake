# Finds oneDNN by its header and library. The CMake package that Debian ships also requires OpenCL,
# which Braid does not use. Sets BraidOneDNN_FOUND and BraidOneDNN_VERSION and defines the target
# BraidOneDNN::dnnl.
set(braid_hints HINTS ${dnnl_ROOT} $ENV{dnnl_ROOT})
find_path(BraidOneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp ${braid_hints} PATH_SUFFIXES include)
find_library(BraidOneDNN_LIBRARY NAMES dnnl ${braid_hints} PATH_SUFFIXES lib lib64)
unset(braid_hints)
mark_as_advanced(BraidOneDNN_INCLUDE_DIR BraidOneDNN_LIBRARY)
if(BraidOneDNN_INCLUDE_DIR AND EXISTS ${BraidOneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h)
  file(STRINGS ${BraidOneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h braid_lines
       REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH)")
  string(REGEX REPLACE "[^0-9;]" "" braid_lines "${braid_lines}")
  list(JOIN braid_lines "." BraidOneDNN_VERSION)
  unset(braid_lines)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(BraidOneDNN
  REQUIRED_VARS BraidOneDNN_LIBRARY BraidOneDNN_INCLUDE_DIR
  VERSION_VAR BraidOneDNN_VERSION)
if(BraidOneDNN_FOUND AND NOT TARGET BraidOneDNN::dnnl)
  add_library(BraidOneDNN::dnnl UNKNOWN IMPORTED)
  set_target_properties(BraidOneDNN::dnnl PROPERTIES
    IMPORTED_LOCATION ${BraidOneDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${BraidOneDNN_INCLUDE_DIR})
endif()
