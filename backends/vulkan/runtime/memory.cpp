#include "memory.h"

#include "memory/budget.h"
#include "vma.h"

#include <algorithm>
#include <cstring>

namespace redline::vulkan {

Buffer::Buffer(Buffer&& other) noexcept {
    *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(handle_, other.handle_);
    std::swap(allocation_, other.allocation_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    return *this;
}

Buffer::~Buffer() {
    if (!handle_) return;
    if (memory_->guarded_) {
        const std::lock_guard lock(memory_->guards_mutex_);
        memory_->guards_.erase(handle_);
    }
    vmaDestroyBuffer(memory_->allocator_, handle_, allocation_);
}

uint64_t Buffer::guard() const {
    return memory_ && memory_->guarded_ ? kGuardBytes : 0;
}

Status Buffer::flush() const {
    if (!allocation_) return {};
    return checked(vmaFlushAllocation(memory_->allocator_, allocation_, 0, VK_WHOLE_SIZE),
                   "writing mapped memory");
}

Status Buffer::invalidate() const {
    if (!allocation_) return {};
    return checked(vmaInvalidateAllocation(memory_->allocator_, allocation_, 0, VK_WHOLE_SIZE),
                   "reading mapped memory");
}

Result<std::unique_ptr<Memory>> Memory::create(Device& device, bool guarded) {
    std::unique_ptr<Memory> made(new Memory(device, guarded));
    VmaVulkanFunctions functions = {};
    functions.vkGetInstanceProcAddr = vkGetInstanceProcAddr;
    functions.vkGetDeviceProcAddr = vkGetDeviceProcAddr;
    VmaAllocatorCreateInfo create = {};
    create.physicalDevice = device.report().handle;
    create.device = device.handle();
    create.instance = device.instance();
    create.pVulkanFunctions = &functions;
    create.vulkanApiVersion = VK_API_VERSION_1_2;
    if (device.report().budget) create.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
    RL_TRY(checked(vmaCreateAllocator(&create, &made->allocator_), "preparing device memory"));
    return made;
}

std::unique_ptr<Memory> Memory::counting(const Memory& like) {
    std::unique_ptr<Memory> made(new Memory(like.device_));
    made->always_stage = like.always_stage;
    return made;
}

// A buffer that has no memory says how much it would take.
Result<Buffer> Memory::count(const VkBufferCreateInfo& create) {
    VkBuffer buffer = VK_NULL_HANDLE;
    RL_TRY(checked(vkCreateBuffer(device_.handle(), &create, nullptr, &buffer), "sizing a buffer"));
    VkMemoryRequirements wanted = {};
    vkGetBufferMemoryRequirements(device_.handle(), buffer, &wanted);
    vkDestroyBuffer(device_.handle(), buffer, nullptr);
    counted_ += wanted.size;
    Buffer sized;
    sized.size_ = create.size;
    return sized;
}

bool Memory::maps_steps() const {
    constexpr VkMemoryPropertyFlags kBoth =
        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    VkPhysicalDeviceMemoryProperties memory = {};
    vkGetPhysicalDeviceMemoryProperties(device_.report().handle, &memory);
    const std::span types(memory.memoryTypes, memory.memoryTypeCount);
    return !always_stage && std::ranges::any_of(types, [](const VkMemoryType& type) {
        return (type.propertyFlags & kBoth) == kBoth;
    });
}

Memory::~Memory() {
    if (allocator_) vmaDestroyAllocator(allocator_);
}

uint64_t Memory::allocated() const {
    if (counts_only()) return counted_;
    VmaTotalStatistics statistics;
    vmaCalculateStatistics(allocator_, &statistics);
    return statistics.total.statistics.allocationBytes;
}

Error Memory::no_room(uint64_t bytes, std::string_view what, VkResult result) const {
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS] = {};
    vmaGetHeapBudgets(allocator_, budgets);
    std::string heaps;
    for (size_t i = 0; i < device_.report().heaps.size(); ++i)
        heaps += fmt::format(
            "{}heap {} ({}) has {} of {} left", i == 0 ? "" : ", ", i,
            device_.report().heaps[i].local ? "device" : "host",
            format_bytes(budgets[i].budget > budgets[i].usage ? budgets[i].budget - budgets[i].usage : 0),
            format_bytes(device_.report().heaps[i].size));
    return error("cannot allocate {} for {} on {}: {}; {}", format_bytes(bytes), what, device_.report().name,
                 result_name(result), heaps);
}

// A bit for each memory type whose heap has room within its budget. The allocator itself looks at the budget
// only when it makes a block for several buffers, or when it is told to make one for this buffer alone.
uint32_t Memory::types_with_room(uint64_t bytes) {
    vmaSetCurrentFrameIndex(allocator_, ++asked_);  // the driver is asked anew
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS] = {};
    vmaGetHeapBudgets(allocator_, budgets);
    const VkPhysicalDeviceMemoryProperties* memory = nullptr;
    vmaGetMemoryProperties(allocator_, &memory);
    uint32_t types = 0;
    for (uint32_t i = 0; i < memory->memoryTypeCount; ++i) {
        const VmaBudget& heap = budgets[memory->memoryTypes[i].heapIndex];
        const uint64_t unused = heap.statistics.blockBytes - heap.statistics.allocationBytes;
        if (heap.usage + bytes <= heap.budget + unused) types |= 1u << i;
    }
    return types;
}

Result<Buffer> Memory::allocate(uint64_t bytes, Use use, std::string_view what) {
    VkBufferCreateInfo create = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    const uint64_t size = std::max<uint64_t>(bytes, 16);
    create.size = size + (guarded_ ? kGuardBytes : 0);
    create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                   VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    if (counts_only()) return count(create);
    VmaAllocationCreateInfo place = {};
    place.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
    place.flags = VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT;
    if ((use == Use::weights && unified()) || (use == Use::step && maps_steps()))
        place.flags |= VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT |
                       VMA_ALLOCATION_CREATE_HOST_ACCESS_ALLOW_TRANSFER_INSTEAD_BIT |
                       VMA_ALLOCATION_CREATE_MAPPED_BIT;
    if (use == Use::upload) {
        place.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
        place.flags |=
            VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT;
    }
    if (use == Use::readback) {
        place.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
        place.flags |= VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT;
    }
    const bool mapped = (place.flags & VMA_ALLOCATION_CREATE_MAPPED_BIT) != 0;
    if (guarded_) {
        if (!mapped) place.flags |= VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT;
        place.flags |= VMA_ALLOCATION_CREATE_MAPPED_BIT;
        place.flags &=
            ~VmaAllocationCreateFlags(VMA_ALLOCATION_CREATE_HOST_ACCESS_ALLOW_TRANSFER_INSTEAD_BIT);
    }
    Buffer buffer;
    VmaAllocationInfo info = {};
    // Alone in their memory, these are held to the budget exactly.
    constexpr uint64_t kLarge = uint64_t(16) << 20;
    if (bytes >= kLarge) place.flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    place.memoryTypeBits = types_with_room(create.size);
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    const bool refused = fail_after.load() >= 0 && fail_after.fetch_sub(1) == 0;
    if (place.memoryTypeBits != 0 && !refused)
        result = vmaCreateBuffer(allocator_, &create, &place, &buffer.handle_, &buffer.allocation_, &info);
    if (result != VK_SUCCESS) return no_room(bytes, what, result);
    buffer.memory_ = this;
    buffer.size_ = size;
    if (vkSetDebugUtilsObjectNameEXT) {
        const std::string name(what);
        const VkDebugUtilsObjectNameInfoEXT named = {VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                                     nullptr, VK_OBJECT_TYPE_BUFFER, uint64_t(buffer.handle_),
                                                     name.c_str()};
        (void)vkSetDebugUtilsObjectNameEXT(device_.handle(), &named);
    }
    if (mapped) buffer.mapped_ = static_cast<std::byte*>(info.pMappedData);
    if (guarded_) {
        auto* const data = static_cast<std::byte*>(info.pMappedData);
        std::memset(data, int(kPoison), size);
        std::memset(data + size, int(kGuard), create.size - size);
        RL_TRY(buffer.flush());
        const std::lock_guard lock(guards_mutex_);
        guards_[buffer.handle_] = {buffer.allocation_, data, size, std::string(what), {}};
    }
    return buffer;
}

Status Memory::set_gaps(const Buffer& buffer, std::vector<ByteRange> gaps) {
    const std::lock_guard lock(guards_mutex_);
    Guarded& own = guards_.at(buffer.handle_);
    for (const ByteRange& gap : gaps) std::memset(own.data + gap.begin, int(kGuard), gap.end - gap.begin);
    own.gaps = std::move(gaps);
    return buffer.flush();
}

Status Memory::check_guards() const {
    const std::lock_guard lock(guards_mutex_);
    for (const auto& [handle, buffer] : guards_) {
        RL_TRY(checked(vmaInvalidateAllocation(allocator_, buffer.allocation, 0, VK_WHOLE_SIZE),
                       "reading guards"));
        const auto check = [&](uint64_t begin, uint64_t end) {
            return check_guard({buffer.data + begin, end - begin}, int64_t(begin), buffer.what, buffer.size);
        };
        RL_TRY(check(buffer.size, buffer.size + kGuardBytes));
        for (const ByteRange& gap : buffer.gaps) RL_TRY(check(gap.begin, gap.end));
    }
    return {};
}

}  // namespace redline::vulkan
