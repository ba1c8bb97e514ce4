// Storage of 16 and 8 bits is all that is required; arithmetic in them is not, so halfs are widened as bits.
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_control_flow_attributes : require
#include "args.h"

// Written as its bits: drivers may take what would be one, such as the difference of an infinity with itself, for zero.
#define NOT_A_NUMBER uintBitsToFloat(0x7FC00000u)
int signed_byte(uint word, uint index) {
    return bitfieldExtract(int(word), int(index) * 8, 8);
}
uint byte_of(uint word, uint index) {
    return bitfieldExtract(word, int(index) * 8, 8);
}
