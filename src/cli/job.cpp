#include "cli/job.h"

#include "cli/command.h"
#include "cli/surroundings.h"
#include "cli/terminal/terminal.h"
#include "host/rank_job.h"
#include "mpi/mpi_wire.h"

#include <filesystem>

// From the build: the folder of libraries as seen from the program.
#ifndef RL_LIB_FROM_PROGRAM
#error "the build says where libraries are installed"
#endif

namespace redline::cli {

namespace {

namespace fs = std::filesystem;

LaunchedAs launched() {
    static const LaunchedAs as = launched_as(environment_variable);
    return as;
}

// The plug-in of the MPI that has started this process comes first.
std::vector<std::string> plugins() {
    std::vector<std::string> names = {"redline-mpi-mpich.so", "redline-mpi.so", "redline-mpi-openmpi.so"};
    if (!environment_variable("OMPI_COMM_WORLD_SIZE").empty() || !environment_variable("PMIX_RANK").empty())
        names = {"redline-mpi-openmpi.so", "redline-mpi.so"};
    std::error_code unknown;
    const fs::path folder = fs::read_symlink("/proc/self/exe", unknown).parent_path();
    std::vector<std::string> all;
    for (const std::string& name : names) {
        all.push_back((folder / name).string());
        all.push_back((folder / RL_LIB_FROM_PROGRAM / "redline" / name).lexically_normal().string());
    }
    return all;
}

// True for one rank of each machine: what is missing there is said once.
bool speaks_for_host() {
    for (const char* number : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
        if (const std::string mine = environment_variable(number); !mine.empty()) return mine == "0";
    return launched().rank == 0;
}

// Rank 0's view of the job, until the program ends.
std::unique_ptr<RankJob>& the_job() {
    static std::unique_ptr<RankJob> job;
    return job;
}

int compute(std::unique_ptr<Wire> wire, ModelOptions& options) {
    const std::string name = wire->name_of(wire->rank());
    voice().quiet = true;
    options.notes = &silent_notes();
    options.shares.clear();  // rank 0 shares the layers out
    // Rank 0 decides when the job ends. A second signal ends this rank.
    const Interrupts interrupts;
    RankWorker worker(*wire);
    const Status served = serve_rank(worker, options);
    wire->finish();
    return served ? kDone : fail(error("{}: {}", name, served.error().message));
}

}  // namespace

bool is_in_job() {
    return launched().ranks > 1;
}

std::optional<int> refuse_in_job(std::string_view command) {
    if (!is_in_job()) return {};
    for (const std::string_view one : {"run", "serve", "bench", "info", "help"})
        if (command == one) return {};
    if (launched().rank > 0) return kDone;
    return fail(
        error(
            "{} runs in one process: start it without mpirun; run, serve, bench and info take several ranks",
            command),
        kUsage);
}

std::optional<int> join_job(ModelOptions& options) {
    if (!is_in_job()) return {};
    Result<std::unique_ptr<Wire>> opened = open_mpi_wire(plugins());
    if (!opened) {
        if (!speaks_for_host()) return kFailed;
        return fail(error("rank {}: {}", launched().rank, opened.error().message));
    }
    std::unique_ptr<Wire>& wire = opened.value();
    options.ranks_here = wire->ranks_here();
    if (wire->rank() > 0) return compute(std::move(wire), options);
    the_job() = std::make_unique<RankJob>(std::make_shared<RemoteTeam>(std::move(wire)));
    options.job = the_job().get();
    return {};
}

int end_job(int code) {
    if (the_job()) the_job()->team().end(code == kDone ? kFailed : code);
    return code;
}

}  // namespace redline::cli
