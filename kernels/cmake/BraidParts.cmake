# The large kernels of gemm are compiled in parts, in parallel: a part is a source in the build
# folder, made from a pattern.

# braid_part(<variable> <file> <pattern> <lines>...): makes a source of the build folder from the
# pattern, with the lines in place of @BRAID_PART@, and adds it to the list in the variable. Both
# names are relative to the folder kernels.
function(braid_part variable file pattern)
  list(JOIN ARGN "\n" BRAID_PART)
  string(APPEND BRAID_PART "\n")
  set(source ${PROJECT_BINARY_DIR}/kernels/${file})
  configure_file(${PROJECT_SOURCE_DIR}/kernels/${pattern} ${source} @ONLY)
  set(${variable} ${${variable}} ${source} PARENT_SCOPE)
endfunction()
