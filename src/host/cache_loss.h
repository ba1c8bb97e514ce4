// The loss of a cache of few bits with a model, where it is known from the model's file.
#pragma once

#include "gguf/gguf.h"
#include "plan/types.h"

#include <string>

namespace redline {

// Says that keys of this type lose what the model needs: where a layer adds a large bias to its keys, one
// scale has to serve the bias and what differs from token to token. Empty where nothing is known to be lost.
std::string key_loss(const Gguf& gguf, CacheTypes cache);

}  // namespace redline
