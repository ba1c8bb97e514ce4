// When each kernel of a program began and ended on an NVIDIA card: a library that CUDA loads into the program
// (CUDA_INJECTION64_PATH) and that writes a line per kernel to the file KERNEL_TIMES: begin and end in ns, the
// grid, threads, the name. Wants CUPTI of the driver's CUDA or an older one; see tools/measure/kernel_times.py.
#include <cuda.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

static FILE* out;

static void CUPTIAPI give_room(uint8_t** buffer, size_t* size, size_t* most_records) {
    *size = 8 << 20;
    *buffer = aligned_alloc(8, *size);
    *most_records = 0;
}

static void CUPTIAPI take_records(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size,
                                  size_t valid) {
    (void)context, (void)stream, (void)size;
    for (CUpti_Activity* next = NULL; cuptiActivityGetNextRecord(buffer, valid, &next) == CUPTI_SUCCESS;) {
        if (next->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || !out) continue;
        const CUpti_ActivityKernel10* kernel = (const CUpti_ActivityKernel10*)next;
        fprintf(out, "%llu %llu %d %d %d %d %s\n", (unsigned long long)kernel->start,
                (unsigned long long)kernel->end, kernel->gridX, kernel->gridY, kernel->gridZ, kernel->blockX,
                kernel->name);
    }
    free(buffer);
}

static void finish(void) {
    cuptiActivityFlushAll(1);
    if (out) fclose(out);
    out = NULL;
}

int InitializeInjection(void) {
    const char* path = getenv("KERNEL_TIMES");
    out = path ? fopen(path, "w") : NULL;
    if (!out) fprintf(stderr, "kernel_times: KERNEL_TIMES names no file that can be written\n");
    if (cuptiActivityRegisterCallbacks(give_room, take_records) != CUPTI_SUCCESS ||
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS)
        fprintf(stderr, "kernel_times: CUPTI cannot watch this program's kernels\n");
    atexit(finish);
    return 1;
}
