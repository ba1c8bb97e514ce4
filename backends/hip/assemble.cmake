# Makes a code object of the assembly of HIP kernels, for the target named or for another that has the same instructions.
# usage: cmake -DCLANG=C -DASSEMBLY=FILE -DFROM=TARGET -DFOR=TARGET -DOBJECT=FILE -P assemble.cmake
# Version 5 is what ROCm 5.7 loads; generic targets need version 6. Their kernels' metadata is the same.
if("${FOR}" MATCHES "generic$")
  set(version 6)
else()
  set(version 5)
endif()
file(READ ${ASSEMBLY} text)
string(REPLACE "amdgcn-amd-amdhsa--${FROM}" "amdgcn-amd-amdhsa--${FOR}" text "${text}")
string(REGEX REPLACE "(amdhsa_code_object_version) [0-9]+" "\\1 ${version}" text "${text}")
file(WRITE ${OBJECT}.s "${text}")
execute_process(COMMAND ${CLANG} --target=amdgcn-amd-amdhsa -mcpu=${FOR} -x assembler ${OBJECT}.s -Wl,--strip-all
                        -Wl,--no-undefined -o ${OBJECT}
                RESULT_VARIABLE status)
file(REMOVE ${OBJECT}.s)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${ASSEMBLY} cannot be assembled for ${FOR}")
endif()
