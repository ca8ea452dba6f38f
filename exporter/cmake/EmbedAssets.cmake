# Files as bytes in a C++ source. Included: tacho_embed_assets(<source> <folder> <name>…) adds the rule. Run as a script
# (cmake -P, with FOLDER, NAMES and SOURCE) it writes the source: `kEmbedded`, an array of tacho::page::Asset.
if(CMAKE_SCRIPT_MODE_FILE)
  set(arrays "")
  set(entries "")
  set(number 0)
  foreach(name IN LISTS NAMES)
    file(READ ${FOLDER}/${name} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    string(REPLACE "'\\x0a'," "'\\x0a',\n" bytes "${bytes}")
    file(SHA256 ${FOLDER}/${name} digest)
    string(SUBSTRING ${digest} 0 16 tag)
    string(APPEND arrays "constexpr char kBytes${number}[] = {\n${bytes}};\n")
    string(APPEND entries "    {\"${name}\", {kBytes${number}, sizeof(kBytes${number})}, \"${tag}\"},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(WRITE ${SOURCE}
       "#include \"page/assets.h\"\n\nnamespace {\n${arrays}"
       "constexpr tacho::page::Asset kEmbedded[] = {\n${entries}};\n}  // namespace\n\n"
       "std::span<const tacho::page::Asset> tacho::page::assets() {\n  return kEmbedded;\n}\n")
  return()
endif()

set(embed_assets_script ${CMAKE_CURRENT_LIST_FILE} CACHE INTERNAL "")

function(tacho_embed_assets source folder)
  list(TRANSFORM ARGN PREPEND ${folder}/ OUTPUT_VARIABLE files)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} "-DNAMES=${ARGN}" -DSOURCE=${source} -P ${embed_assets_script}
    DEPENDS ${files} ${embed_assets_script}
    COMMENT "Files of the page"
    VERBATIM)
  # Of two targets, and so behind no library: clang-tidy wants the source alone.
  add_custom_target(embedded_assets DEPENDS ${source})
endfunction()
