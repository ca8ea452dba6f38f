# civetweb::civetweb: a static civetweb with OpenSSL 3, IPv6 and unix sockets, and nothing that tacho does not use.
#
# Debian 12's binary package has none of the three and lacks the fixes for CVE-2025-55763 and CVE-2025-9648, so
# trixie's source package is built instead: found in TACHO_DOWNLOAD_CACHE or brought there by fetch-debian,
# checked against the hashes below, patched with debian/patches and with what exporter/web/request_head.cpp needs.
#
# Debian's pool keeps the current version only. When trixie has a newer one and the pinned one is nowhere any more, that
# newer one is built, which is there for its fixes: apt takes it from trixie's signed index, parse.patch has to apply,
# and the tests judge what comes out. CMake says so, and so does the program's bill of materials; the pin wants to follow.
#
#   TACHO_CIVETWEB_SOURCE_DIR  an unpacked civetweb that has Debian's patches already; nothing is downloaded
#   TACHO_DOWNLOAD_CACHE       where the archives are kept; survives a clean build, so that the next works offline

set(civetweb_version 1.16+dfsg-2+deb13u1)
set(civetweb_orig civetweb_1.16+dfsg.orig.tar.xz)
set(civetweb_orig_sha256 41dbfd68cd3b914ce440a5813f21058813b61a972600cc04fb8233a0d2d04fe4)
set(civetweb_debian civetweb_${civetweb_version}.debian.tar.xz)
set(civetweb_debian_sha256 1e5f56ab5592026dc5cd90302cfaa5a66b889f8959440e64dc0e373d18165ebb)

if(DEFINED ENV{XDG_CACHE_HOME})
  set(default_cache $ENV{XDG_CACHE_HOME}/tacho)
elseif(DEFINED ENV{HOME})
  set(default_cache $ENV{HOME}/.cache/tacho)
else()
  set(default_cache ${PROJECT_BINARY_DIR}/downloads)
endif()
set(TACHO_DOWNLOAD_CACHE ${default_cache} CACHE PATH "Where downloaded source archives are kept")
set(TACHO_CIVETWEB_SOURCE_DIR "" CACHE PATH "civetweb source tree with Debian's patches, instead of a download")

find_program(PATCH_PROGRAM patch REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(Threads REQUIRED)

function(civetweb_apply_patch tree patch)
  execute_process(
    COMMAND ${PATCH_PROGRAM} --strip=1 --batch --forward --silent --no-backup-if-mismatch --input=${patch}
    WORKING_DIRECTORY ${tree} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "civetweb: ${patch} does not apply to ${tree}:\n${output}")
  endif()
endfunction()

# Downloads trixie's current version, whatever it is; sets the names of its archives for the caller.
macro(civetweb_obtain_current why)
  execute_process(COMMAND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/fetch-debian --source civetweb trixie ${TACHO_DOWNLOAD_CACHE}
                  RESULT_VARIABLE failed OUTPUT_VARIABLE archives ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "civetweb: could not obtain the source:\n${why}${output}"
                        "Or set TACHO_CIVETWEB_SOURCE_DIR to a patched civetweb source tree.")
  endif()
  string(REGEX MATCH "civetweb_[^\n]*\\.orig\\.tar\\.[a-z0-9]+" civetweb_orig "${archives}")
  string(REGEX MATCH "civetweb_[^\n]*\\.debian\\.tar\\.[a-z0-9]+" civetweb_debian "${archives}")
  if(NOT civetweb_orig OR NOT civetweb_debian)
    message(FATAL_ERROR "civetweb: trixie's source has other archives than expected:\n${archives}")
  endif()
  message(WARNING "civetweb: ${civetweb_version} is not to be had any more, ${civetweb_debian} is built in its place: "
                  "run the tests, and pin it in exporter/cmake/Civetweb.cmake")
endmacro()

# Downloads what the cache lacks. A wrong archive in the cache is fetched again once, then it is an error.
function(civetweb_obtain)
  set(missing)
  foreach(archive IN ITEMS orig debian)
    set(path ${TACHO_DOWNLOAD_CACHE}/${civetweb_${archive}})
    set(actual)
    if(EXISTS ${path})
      file(SHA256 ${path} actual)
    endif()
    if(NOT actual STREQUAL civetweb_${archive}_sha256)
      if(actual)
        message(WARNING "civetweb: ${path} has SHA-256 ${actual}, not ${civetweb_${archive}_sha256}; fetching it again")
      endif()
      list(APPEND missing ${civetweb_${archive}}=${civetweb_${archive}_sha256})
    endif()
  endforeach()
  if(missing)
    message(STATUS "civetweb: fetching ${civetweb_version} from this machine's Debian mirror into ${TACHO_DOWNLOAD_CACHE}")
    execute_process(COMMAND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/fetch-debian pool/main/c/civetweb
                            ${TACHO_DOWNLOAD_CACHE} ${missing}
                    RESULT_VARIABLE failed ERROR_VARIABLE output)
    if(failed)
      civetweb_obtain_current("${output}")
      return(PROPAGATE civetweb_orig civetweb_debian)
    endif()
  endif()
  foreach(archive IN ITEMS orig debian)
    file(SHA256 ${TACHO_DOWNLOAD_CACHE}/${civetweb_${archive}} actual)
    if(NOT actual STREQUAL civetweb_${archive}_sha256)
      message(FATAL_ERROR "civetweb: ${TACHO_DOWNLOAD_CACHE}/${civetweb_${archive}} has SHA-256\n  ${actual}, expected\n"
                          "  ${civetweb_${archive}_sha256}\nThe file is damaged or not Debian's: remove it and configure again.")
    endif()
  endforeach()
endfunction()

# Leaves a patched tree in ${tree}, built aside and renamed, so that an interrupted configure leaves none.
function(civetweb_unpack tree)
  set(scratch ${tree}.part)
  file(REMOVE_RECURSE ${scratch} ${tree})
  if(TACHO_CIVETWEB_SOURCE_DIR)
    file(MAKE_DIRECTORY ${scratch})
    file(COPY ${TACHO_CIVETWEB_SOURCE_DIR}/src ${TACHO_CIVETWEB_SOURCE_DIR}/include DESTINATION ${scratch})
  else()
    civetweb_obtain()
    # dfsg: repacked by Debian without files it may not ship; the top folder keeps upstream's name.
    file(ARCHIVE_EXTRACT INPUT ${TACHO_DOWNLOAD_CACHE}/${civetweb_orig} DESTINATION ${scratch}.orig)
    file(GLOB top ${scratch}.orig/*)
    file(RENAME ${top} ${scratch})
    file(REMOVE_RECURSE ${scratch}.orig)
    file(ARCHIVE_EXTRACT INPUT ${TACHO_DOWNLOAD_CACHE}/${civetweb_debian} DESTINATION ${scratch})
    file(STRINGS ${scratch}/debian/patches/series series REGEX "^[^#]")
    foreach(patch IN LISTS series)
      civetweb_apply_patch(${scratch} ${scratch}/debian/patches/${patch})
    endforeach()
  endif()
  civetweb_apply_patch(${scratch} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/civetweb/parse.patch)
  file(RENAME ${scratch} ${tree})
endfunction()

# What the tree depends on is part of its name: a changed pin or patch makes another one.
file(SHA256 ${CMAKE_CURRENT_LIST_DIR}/civetweb/parse.patch civetweb_key)
string(SHA256 civetweb_key "${civetweb_key} ${civetweb_debian_sha256} ${TACHO_CIVETWEB_SOURCE_DIR}")
string(SUBSTRING ${civetweb_key} 0 12 civetweb_key)
set(civetweb_tree ${PROJECT_BINARY_DIR}/civetweb-${civetweb_key})
set(TACHO_CIVETWEB_TREE ${civetweb_tree} CACHE INTERNAL "For deploy/package/inventory")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/civetweb/parse.patch)
if(TACHO_CIVETWEB_SOURCE_DIR AND NOT EXISTS ${TACHO_CIVETWEB_SOURCE_DIR}/src/civetweb.c)
  message(FATAL_ERROR "TACHO_CIVETWEB_SOURCE_DIR: ${TACHO_CIVETWEB_SOURCE_DIR}/src/civetweb.c does not exist")
endif()
if(NOT EXISTS ${civetweb_tree}/src/civetweb.c)
  civetweb_unpack(${civetweb_tree})
endif()

add_library(civetweb STATIC ${civetweb_tree}/src/civetweb.c)
add_library(civetweb::civetweb ALIAS civetweb)
target_include_directories(civetweb SYSTEM PUBLIC ${civetweb_tree}/include)
target_compile_definitions(civetweb
  PUBLIC USE_IPV6 USE_X_DOM_SOCKET
  PRIVATE OPENSSL_API_3_0 NO_SSL_DL NO_CGI NO_FILES NO_FILESYSTEMS NO_CACHING
          MG_EXTERNAL_FUNCTION_log_access MG_EXTERNAL_FUNCTION_mg_cry_internal_impl
          SOCKET_TIMEOUT_QUANTUM=100)  # ms between two looks at the stop flag; bounds how long a stop takes
target_include_directories(civetweb PRIVATE ${CMAKE_CURRENT_LIST_DIR}/civetweb)
# Of its 20 000 lines only the parser of request heads is called: the linker leaves the rest out.
target_compile_options(civetweb PRIVATE -w -ffunction-sections -fdata-sections)
target_link_options(civetweb INTERFACE -Wl,--gc-sections)
target_link_libraries(civetweb PRIVATE OpenSSL::SSL OpenSSL::Crypto Threads::Threads ${CMAKE_DL_LIBS})
