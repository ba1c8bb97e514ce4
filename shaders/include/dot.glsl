// Four products of signed bytes and their sum. By the instruction itself, since not every glslang knows the
// extension's functions.
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int dot_bytes(int a, int b, spirv_literal int packed_4x8);
#define DOT4(a, b) dot_bytes(int(a), int(b), 0)

// Of 16 codes.
int code_sum(uvec4 codes) {
    int sum = 0;
    [[unroll]] for (uint k = 0; k < 4; ++k) sum += DOT4(codes[k], 0x01010101u);
    return sum;
}
