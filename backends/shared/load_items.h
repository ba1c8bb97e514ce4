// What backends share in loading weights: several threads read, each what comes next.
#pragma once

#include "base/control_group.h"
#include "plan/backend.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace redline {

// Threads that read: one per CPU that may be used, up to `most`.
inline size_t reader_count(size_t most) {
    return std::min<size_t>(most, usable_cpus());
}

// For placing weights that are not read.
struct NoSource : ByteSource {
    Status read(size_t, uint64_t, std::span<std::byte>) override { return error("there is no content"); }
};

// Calls load(reader, item) once for each item, of which each is a piece of the tensor of
// weights[item.weight]. Reader 0 is this thread, which tells of progress; the others have threads of their
// own. `load` returns how many bytes of the file it has read. The first error ends all and is returned, with
// the tensor's name.
template <typename Item, typename Load>
Status load_items(std::span<const WeightInfo> weights, std::span<const Item> items, size_t readers,
                  const Progress& progress, const Load& load) {
    uint64_t total = 0;
    for (const WeightInfo& weight : weights) total += weight.tensor.bytes();
    std::atomic<size_t> next = 0;
    std::atomic<uint64_t> done = 0;
    std::mutex mutex;
    Status status;
    const auto read = [&](size_t reader) {
        for (size_t i = next.fetch_add(1); i < items.size(); i = next.fetch_add(1)) {
            const Result<uint64_t> bytes = [&]() -> Result<uint64_t> {
                try {
                    return load(reader, items[i]);
                } catch (const std::bad_alloc&) {  // would end the program, in a thread
                    return error("not enough memory to load it");
                }
            }();
            if (!bytes) {
                const std::lock_guard lock(mutex);
                if (status)
                    status =
                        error("tensor {}: {}", weights[items[i].weight].tensor.name, bytes.error().message);
                next.store(items.size());
                return;
            }
            done.fetch_add(bytes.value());
            if (reader == 0 && progress) progress(done.load(), total);
        }
    };
    std::vector<std::thread> threads;
    try {
        for (size_t reader = 1; reader < readers; ++reader) threads.emplace_back(read, reader);
    } catch (const std::exception&) {  // the system refused a thread: the others do its work
    }
    read(0);
    for (std::thread& thread : threads) thread.join();
    if (status && progress) progress(total, total);
    return status;
}

}  // namespace redline
