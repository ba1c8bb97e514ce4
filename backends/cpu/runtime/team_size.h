// How many threads of a team compute where other programs use the CPU, too. A thread that the system takes
// off its processor keeps the others waiting at the next barrier, so fewer threads are then faster. This is
// the decision alone: it is told how long each run took, and reads no clock.
#pragma once

#include <cstdint>

namespace redline::cpu {

// The time of runs, and how much they did.
struct RunTime {
    double seconds = 0.0;      // from begin to end
    double cpu_seconds = 0.0;  // in which the threads had a processor, added up
    double work = 0.0;         // in any unit

    void add(const RunTime& run);
    double speed() const { return work / seconds; }
    double lost_at(double speed) const { return seconds - work / speed; }
};

// Stays at all threads while each of them has a processor. When they lose some, tries fewer, keeps what is
// faster, and tries all of them again from time to time.
class TeamSize {
public:
    explicit TeamSize(uint32_t most) : most_(most), settled_(most), now_(most) {}

    // For the next run.
    uint32_t threads() const { return now_; }
    // The number that was fastest so far; the next run may be one that tries another.
    uint32_t settled() const { return settled_; }
    // The time of the run with threads() threads.
    void ran(const RunTime& run);
    // Time without runs has passed.
    void rested(double seconds);

private:
    void watch();
    void note_calm(bool disturbed);
    void judge();
    void settle();
    void start(uint32_t threads);
    void pay(double lost_seconds);
    double lost() const;  // processors, on average
    uint32_t undisturbed() const;

    uint32_t most_, settled_, now_;
    RunTime span_;               // of the latest runs with now_ threads
    RunTime grown_;              // of all runs since the number grew
    double speed_ = 0.0;         // with settled_ threads, lately
    double run_seconds_ = 0.0;   // of the latest run with settled_ threads
    double before_grown_ = 0.0;  // the speed before the number grew; 0: it has not, or long ago
    double wait_ = 0.0;          // seconds until the next trial
    double calm_ = 0.0;          // seconds since the latest span that lost processors
    bool disturbed_ = false;     // by a span that lost some, without kCalm since
    uint32_t failed_ = 0;        // trials of fewer threads since one was better
    bool grow_next_ = false;
};

}  // namespace redline::cpu
