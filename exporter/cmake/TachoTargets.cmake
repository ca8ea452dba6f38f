# How every target of the project is compiled: one INTERFACE library for warnings and sanitizers,
# one function for a library folder, one for a BPF object with its skeleton.

add_library(tacho_compile_options INTERFACE)
target_compile_options(tacho_compile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wnull-dereference -Wformat=2 -Wimplicit-fallthrough -fno-omit-frame-pointer
  $<$<BOOL:${TACHO_WARNINGS_AS_ERRORS}>:-Werror>)
# libstdc++ 12 uses what it has deprecated itself (std::stable_sort's buffer); clang blames the one who calls it. What
# our own code takes that is deprecated, g++ tells.
target_compile_options(tacho_compile_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
if(TACHO_SANITIZE)
  target_compile_options(tacho_compile_options INTERFACE -fsanitize=${TACHO_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(tacho_compile_options INTERFACE -fsanitize=${TACHO_SANITIZE})
  # To read an object's type clang's UBSan opens a pipe, and takes it for no object where no descriptor is left.
  target_compile_options(tacho_compile_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=vptr>)
  if(TACHO_SANITIZE STREQUAL thread)
    # Our fences order what the kernel's programs write; of these the sanitizer knows nothing anyway.
    target_compile_options(tacho_compile_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
endif()

# tacho_library(<name> SOURCES … [PUBLIC libs…] [PRIVATE libs…]): one folder of exporter/ as a static library.
function(tacho_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/exporter ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} tacho_compile_options)
endfunction()
