// The file of a model that a user calls by its name.
#pragma once

#include "fetch/hub.h"
#include "host/notes.h"
#include "store/model_files.h"

#include <optional>

namespace redline {

// A path to a file stays as it is, and so does everything where there are no stores. Other names, or parts of
// one, are looked for in the stores; the error lists the models where there are several, and says what would
// help where there is none.
Result<std::string> find_model(const std::string& given, const std::vector<ModelStore>& stores, Notes& notes);

// The file of a hub's model that some program has fetched into one of the stores: all its parts are there,
// and they are sound. `faults` gets what is wrong with others.
std::optional<StoredModel> find_hub_model(const HubModel& model, const std::vector<ModelStore>& stores,
                                          std::vector<std::string>& faults);

}  // namespace redline
