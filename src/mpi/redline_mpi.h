/* The interface between redline and its MPI plug-in, a shared library that is compiled against the MPI of a
 * machine. It is plain C, and no type of MPI is in it. Handles of OpenMPI and MPICH differ, so a plug-in
 * works with the MPI of its build. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDLINE_MPI_INTERFACE 1
/* The most bytes of a message. */
#define REDLINE_MPI_MOST_BYTES (UINT64_C(1) << 30)

/* All functions are called by one thread, start() first. Those with a result return 0, or a number that is
 * not 0 after they have put a sentence into `problem`, which has `problem_bytes`. */
struct RedlineMpi {
    uint32_t interface_version;   /* REDLINE_MPI_INTERFACE */
    const char* (*library)(void); /* "Open MPI v4.1.4" */
    int (*start)(uint32_t* rank, uint32_t* ranks, char* problem, uint64_t problem_bytes);
    /* Collects as many bytes of each rank, in the order of ranks. */
    int (*gather)(const void* mine, void* all, uint32_t bytes, char* problem, uint64_t problem_bytes);
    /* Begins to send; the bytes stay until sent() has said that it is done. */
    int (*send)(uint32_t to, const void* bytes, uint64_t count, void** sending, char* problem,
                uint64_t problem_bytes);
    int (*sent)(void* sending, int* done, char* problem, uint64_t problem_bytes);
    /* Looks for a message without waiting; where `found` is set, receive() takes it. */
    int (*probe)(int* found, uint32_t* from, uint64_t* bytes, char* problem, uint64_t problem_bytes);
    int (*receive)(uint32_t from, void* bytes, uint64_t count, char* problem, uint64_t problem_bytes);
    /* Ends the whole job with this exit status; does not return. */
    void (*abort)(int status);
    /* Waits for all ranks to call it. */
    void (*finish)(void);
};

/* The one symbol of the plug-in. */
const struct RedlineMpi* redline_mpi(void);

#ifdef __cplusplus
}
#endif
