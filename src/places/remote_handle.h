// Things that were made at another rank by calls: further calls name them by a number.
#pragma once

#include "places/remote_team.h"

namespace redline {

// A thing that was made at a rank, which lives there as long as this.
class Remote {
public:
    Remote(std::shared_ptr<RemoteTeam> team, uint32_t rank, uint64_t handle)
        : team_(std::move(team)), rank_(rank), handle_(handle) {}
    ~Remote() { team_->post(rank_, RemoteCall::drop, std::move(Packer().add(handle_))); }
    Remote(const Remote&) = delete;
    Remote& operator=(const Remote&) = delete;

    RemoteTeam& team() const { return *team_; }
    const std::shared_ptr<RemoteTeam>& shared_team() const { return team_; }
    uint32_t rank() const { return rank_; }
    uint64_t handle() const { return handle_; }
    Result<std::vector<std::byte>> call(RemoteCall what, Packer arguments) const {
        return team_->call(rank_, what, std::move(arguments));
    }

private:
    std::shared_ptr<RemoteTeam> team_;
    uint32_t rank_;
    uint64_t handle_;
};

}  // namespace redline
