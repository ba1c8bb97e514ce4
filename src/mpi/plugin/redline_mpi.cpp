// The MPI plug-in: the calls of redline_mpi.h in the MPI that it is compiled against.
#include "mpi/redline_mpi.h"

#include <mpi.h>

#include <cstdio>
#include <new>

namespace {

constexpr int kTag = 1;
MPI_Comm job = MPI_COMM_NULL;  // its messages are apart from those of the launcher's tools

int explain(int code, char* problem, uint64_t bytes) {
    if (code == MPI_SUCCESS) return 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    std::snprintf(problem, bytes, "%s", text);
    return 1;
}

const char* library() {
    static char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "MPI";
    for (char* at = text; *at; ++at)  // the first sentence has the name and the version
        if (*at == ',' || *at == '\n') *at = '\0';
    return text;
}

int start(uint32_t* rank, uint32_t* ranks, char* problem, uint64_t bytes) {
    int provided = 0;
    if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided))
        return explain(code, problem, bytes);
    if (provided < MPI_THREAD_FUNNELED) {
        std::snprintf(problem, bytes, "it has no support for threads (MPI_THREAD_FUNNELED)");
        return 1;
    }
    if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &job)) return explain(code, problem, bytes);
    MPI_Comm_set_errhandler(job, MPI_ERRORS_RETURN);
    int mine = 0, all = 0;
    MPI_Comm_rank(job, &mine);
    MPI_Comm_size(job, &all);
    *rank = uint32_t(mine);
    *ranks = uint32_t(all);
    return 0;
}

int gather(const void* mine, void* all, uint32_t count, char* problem, uint64_t bytes) {
    return explain(MPI_Allgather(mine, int(count), MPI_BYTE, all, int(count), MPI_BYTE, job), problem, bytes);
}

int send(uint32_t to, const void* data, uint64_t count, void** sending, char* problem, uint64_t bytes) {
    if (count > REDLINE_MPI_MOST_BYTES) {
        std::snprintf(problem, bytes,
                      "a message of %llu bytes is too large; a smaller batch (-b) makes smaller ones",
                      static_cast<unsigned long long>(count));
        return 1;
    }
    auto* request = new (std::nothrow) MPI_Request;
    if (!request) {
        std::snprintf(problem, bytes, "not enough memory");
        return 1;
    }
    const int code = MPI_Isend(data, int(count), MPI_BYTE, int(to), kTag, job, request);
    if (code != MPI_SUCCESS) {
        delete request;
        return explain(code, problem, bytes);
    }
    *sending = request;
    return 0;
}

int sent(void* sending, int* done, char* problem, uint64_t bytes) {
    auto* request = static_cast<MPI_Request*>(sending);
    const int code = MPI_Test(request, done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || *done) delete request;
    return explain(code, problem, bytes);
}

int probe(int* found, uint32_t* from, uint64_t* count, char* problem, uint64_t bytes) {
    MPI_Status status;
    if (const int code = MPI_Iprobe(MPI_ANY_SOURCE, kTag, job, found, &status))
        return explain(code, problem, bytes);
    if (!*found) return 0;
    int all = 0;
    MPI_Get_count(&status, MPI_BYTE, &all);
    *from = uint32_t(status.MPI_SOURCE);
    *count = uint64_t(all);
    return 0;
}

int receive(uint32_t from, void* data, uint64_t count, char* problem, uint64_t bytes) {
    return explain(MPI_Recv(data, int(count), MPI_BYTE, int(from), kTag, job, MPI_STATUS_IGNORE), problem,
                   bytes);
}

void abort_job(int status) {
    MPI_Abort(MPI_COMM_WORLD, status);
}

void finish() {
    MPI_Comm_free(&job);
    MPI_Finalize();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const RedlineMpi* redline_mpi() {
    static const RedlineMpi calls = {
        REDLINE_MPI_INTERFACE, library, start, gather, send, sent, probe, receive, abort_job, finish};
    return &calls;
}
