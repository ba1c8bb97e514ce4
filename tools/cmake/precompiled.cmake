# The headers of others that most files include take longer to read than the files themselves: they are compiled once. A
# file still names what it uses; CMAKE_DISABLE_PRECOMPILE_HEADERS, with RL_UNITY=OFF, shows where one does not.
set(RL_COMMON_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream>
    <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <string> <string_view>
    <system_error> <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
set(RL_JSON_HEADERS ${RL_COMMON_HEADERS} ${PROJECT_SOURCE_DIR}/src/json/conversions.h)

# Files are compiled eight at a time (RL_UNITY): what they include, and the templates that they all use, take longer than
# they do. Names in anonymous namespaces must differ within a library, except in those whose files are alike.
option(RL_UNITY "compile several files of a library together: a whole build is twice as fast" ON)
set(RL_APART quantize)
# gcc names types by the file that is compiled, which is not the one that they are from.
if(RL_UNITY)
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

# Rooms whose speed matters little, the largest part of a build, are optimised little. Instrumented, optimised code takes twice as
# long to compile as other, and all rooms that compute little are of that kind.
set(RL_COLD api arch cli devices doctor fetch host json measure places plan serve speculate store)
set(RL_COLD_OPTIONS "")
if(RL_SANITIZE)
  set(RL_COLD_OPTIONS -O0)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(RL_COLD_OPTIONS -O1)
endif()

# rl_cold(TARGET): a library is compiled so.
function(rl_cold target)
  target_compile_options(${target} PRIVATE ${RL_COLD_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM rl_cold_headers)
endfunction()

# rl_headers(NAME HEADERS): a library of nothing but these headers, compiled with the options of all libraries.
function(rl_headers name)
  file(CONFIGURE OUTPUT ${RL_GENERATED_DIR}/${name}.cpp CONTENT "")
  add_library(${name} OBJECT ${RL_GENERATED_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE rl_flags rl_fmt nlohmann_json::nlohmann_json)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
