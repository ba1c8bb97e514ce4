// The Vulkan Memory Allocator (vma/vk_mem_alloc.h, version 3.2.1, MIT licence, unchanged): vendored, since
// Debian 12 has no package of it.
#pragma once

#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
#include <vk_mem_alloc.h>
