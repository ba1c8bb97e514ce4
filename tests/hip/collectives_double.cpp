// A stand-in for librccl: its functions over the devices of HIP's double, on whose streams sums are launched.
// Rows are added in the opposite order of the ranks.
//   RL_RCCL_DOUBLE_FAIL    "ncclAllReduce 3 1": the third call from here on returns 1; once
//   RL_RCCL_DOUBLE_WRONG   1: sums are of one rank alone
//   RL_RCCL_DOUBLE_HANGS   "start": ncclCommInitAll does not return; "sum": sums wait until they are given up
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#define RL_EXPORT extern "C" __attribute__((visibility("default")))

struct Stream;
extern "C" int rl_hip_double_launch(Stream* stream, void (*run)(const void*), const void* args, size_t bytes);

namespace {

std::string setting(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

int injected(const char* function) {
    static std::mutex mutex;
    static std::string current;
    static std::map<std::string, int> calls;
    const std::lock_guard lock(mutex);
    const std::string wanted = setting("RL_RCCL_DOUBLE_FAIL");
    if (wanted != current) {
        current = wanted;
        calls.clear();
    }
    const int now = ++calls[function];
    std::istringstream in(wanted);
    std::string name;
    int call = 0, code = 0;
    in >> name >> call >> code;
    return name == function && call == now ? code : 0;
}

// The part that the communicators of several devices share.
struct Group {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<const float*> rows;
    std::vector<float> sums;
    size_t arrived = 0;
    uint64_t round = 0;
    bool aborted = false;

    void add(size_t rank, const float* x, float* y, size_t count) {
        std::unique_lock lock(mutex);
        if (aborted) return;
        rows[rank] = x;
        const uint64_t mine = round;
        if (++arrived == rows.size() && setting("RL_RCCL_DOUBLE_HANGS") != "sum") {
            sums.assign(rows.back(), rows.back() + count);
            for (size_t i = rows.size() - 1; i-- > 0 && setting("RL_RCCL_DOUBLE_WRONG") != "1";)
                for (size_t e = 0; e < count; ++e) sums[e] += rows[i][e];
            arrived = 0;
            ++round;
            changed.notify_all();
        }
        changed.wait(lock, [&] { return round != mine || aborted; });
        if (!aborted) std::memcpy(y, sums.data(), count * sizeof(float));
    }
    void abort() {
        const std::lock_guard lock(mutex);
        aborted = true;
        changed.notify_all();
    }
};

struct Communicator {
    std::shared_ptr<Group> group;
    size_t rank = 0;
};

struct Sum {
    Group* group;
    size_t rank;
    const float* x;
    float* y;
    size_t count;
};

void run_sum(const void* args) {
    const auto* sum = static_cast<const Sum*>(args);
    sum->group->add(sum->rank, sum->x, sum->y, sum->count);
}

}  // namespace

#define RL_MAY_FAIL() \
    if (const int fault = injected(__func__)) return fault

RL_EXPORT int ncclGetVersion(int* version) {
    RL_MAY_FAIL();
    *version = 22205;
    return 0;
}
RL_EXPORT int ncclCommInitAll(Communicator** out, int count, const int*) {
    RL_MAY_FAIL();
    while (setting("RL_RCCL_DOUBLE_HANGS") == "start")
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto group = std::make_shared<Group>();
    group->rows.resize(size_t(count));
    for (int rank = 0; rank < count; ++rank) out[rank] = new Communicator{group, size_t(rank)};
    return 0;
}
RL_EXPORT int ncclAllReduce(const void* x, void* y, size_t count, int type, int op, Communicator* one,
                            Stream* stream) {
    RL_MAY_FAIL();
    if (type != 7 || op != 0) return 4;
    const Sum sum{one->group.get(), one->rank, static_cast<const float*>(x), static_cast<float*>(y), count};
    return rl_hip_double_launch(stream, run_sum, &sum, sizeof(sum)) == 0 ? 0 : 1;
}
RL_EXPORT int ncclCommGetAsyncError(Communicator*, int* code) {
    RL_MAY_FAIL();
    *code = injected("asynchronous");
    return 0;
}
RL_EXPORT int ncclCommAbort(Communicator* one) {
    one->group->abort();
    return 0;  // the group may still be in use by what is in flight
}
RL_EXPORT int ncclCommDestroy(Communicator* one) {
    RL_MAY_FAIL();
    delete one;
    return 0;
}
RL_EXPORT const char* ncclGetErrorString(int code) {
    return code == 1 ? "unhandled cuda error" : code == 2 ? "unhandled system error" : "internal error";
}
RL_EXPORT const char* ncclGetLastError(Communicator*) {
    return "injected\nwith a second line";
}
