// Stores and attention of caches whose keys and values are each of any type.
#include "kernels/attention.h"

RL_MIXED_KERNELS
