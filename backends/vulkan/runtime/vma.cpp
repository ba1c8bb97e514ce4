// The allocator's own code, from its header; its functions are volk's.
#include "api.h"

#define VMA_IMPLEMENTATION
#include "vma.h"
