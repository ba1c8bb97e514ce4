// Watches another process of this machine, to see when it ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace redline::os {

class ProcessWatch {
public:
    // Nothing where the system cannot watch it, or it has ended.
    static std::optional<ProcessWatch> open(int64_t process);
    ~ProcessWatch();
    ProcessWatch(ProcessWatch&& other) noexcept;
    ProcessWatch& operator=(ProcessWatch&& other) noexcept;

    bool ended() const;

private:
    explicit ProcessWatch(int handle) : handle_(handle) {}
    int handle_ = -1;
};

// Short waits of this thread end when they should, and not when the system finds it convenient.
void end_waits_promptly();

// Names the system whose process numbers this process sees; two processes with the same name can watch each
// other.
std::string machine_of_processes();

}  // namespace redline::os
