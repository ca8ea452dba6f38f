# How every target of the project is compiled: one INTERFACE library for warnings and sanitizers,
# one function for a library folder, one for a BPF object with its skeleton.

add_library(tacho_compile_options INTERFACE)
target_compile_options(tacho_compile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wnull-dereference -Wformat=2 -Wimplicit-fallthrough -fno-omit-frame-pointer
  $<$<BOOL:${TACHO_WARNINGS_AS_ERRORS}>:-Werror>)
# g++ looks for garbage whenever its heap has grown by some 100 MB: a tenth of its time, for sources that are compiled as one.
target_compile_options(tacho_compile_options INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=600000>")
# libstdc++ 12 uses what it has deprecated itself (std::stable_sort's buffer); clang blames the one who calls it. What
# our own code takes that is deprecated, g++ tells.
target_compile_options(tacho_compile_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
# It links 100 MB of a sanitized program in a fifth of GNU ld's time. Nothing that users run is built so.
find_program(TACHO_LLD ld.lld-19)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND TACHO_LLD)
  add_link_options(-fuse-ld=lld)
endif()
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

find_package(spdlog REQUIRED)

# What nearly every source includes, read once for each level of optimization; -fpch-preprocess is for ccache. Who builds
# without unity gets no such header either, so that a missing #include is seen. clang, which takes its time elsewhere, has none.
set(TACHO_COMMON_HEADERS <algorithm> <array> <charconv> <chrono> <filesystem> <functional> <map> <memory> <mutex> <optional>
  <set> <span> <string> <string_view> <utility> <vector> <spdlog/spdlog.h>)
set(tacho_common_source ${CMAKE_CURRENT_LIST_DIR}/common_headers.cpp)

# tacho_precompile(<target> <header library> [OPTIONS <option>…] [MORE <header>…]): the second is made with the first call.
function(tacho_precompile name headers)
  cmake_parse_arguments(ARG "" "" "OPTIONS;MORE" ${ARGN})
  if(NOT TACHO_UNITY OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(NOT TARGET ${headers})
    add_library(${headers} OBJECT ${tacho_common_source})
    target_link_libraries(${headers} PRIVATE spdlog::spdlog tacho_compile_options)
    target_compile_options(${headers} PRIVATE "${ARG_OPTIONS}")
    target_precompile_headers(${headers} PRIVATE ${TACHO_COMMON_HEADERS} ${ARG_MORE})
  endif()
  target_precompile_headers(${name} REUSE_FROM ${headers})
  target_compile_options(${name} PRIVATE -fpch-preprocess)
endfunction()

# tacho_library(<name> [HOT] SOURCES … [PUBLIC libs…] [PRIVATE libs…]): one folder of exporter/ as a static library. What
# runs for each series of a scrape, or for each target once a second, is HOT. For the rest of a release a lower level of
# optimization takes a fifth of the compiler's time off.
function(tacho_library name)
  cmake_parse_arguments(ARG "HOT" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/exporter ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} tacho_compile_options)
  set(headers tacho_hot_headers)
  set(level)
  if(NOT ARG_HOT)
    set(headers tacho_headers)
    set(level "$<$<CONFIG:RelWithDebInfo>:-O1;-g0>")
    target_compile_options(${name} PRIVATE "${level}")
  endif()
  tacho_precompile(${name} ${headers} OPTIONS "${level}")
endfunction()
