// volk's own code, from its header.
#define VOLK_IMPLEMENTATION
#include <volk.h>
