// Events about what the caches hold, as routers read them.
#include "serve/batch/kv_events.h"
#include "support/text_support.h"

#include <filesystem>
#include <fstream>

using namespace redline;
using namespace redline::test;
namespace server = redline::serve;

namespace {

std::string hexadecimal(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) text += fmt::format("{:02x}", uint8_t(byte));
    return text;
}

}  // namespace

TEST_CASE("kv events: a batch is the msgpack that vLLM writes") {
    using Change = server::HeldBlocks::Change;
    const std::vector<Change> changes = {{Change::Kind::stored, {5, 300}, 70000, {1, 200}},
                                         {Change::Kind::removed, {uint64_t(1) << 62}, {}, {}},
                                         {Change::Kind::cleared, {}, {}, {}}};
    // [1.5, [...], 1], by the rules of msgpack, with lists and with maps.
    CHECK(hexadecimal(server::event_batch(changes, 1.5, 1, server::EventForm::lists)) ==
          "93cb3ff800000000000093"
          "98ab426c6f636b53746f72656492"
          "05cd012cce000111709201ccc810c0a3475055c0"
          "93ac426c6f636b52656d6f76656491cf4000000000000000a3475055"
          "91b0416c6c426c6f636b73436c656172656401");
    const std::string maps = server::event_batch(changes, 1.5, 1, server::EventForm::maps);
    CHECK(hexadecimal(maps).starts_with("93cb3ff80000000000009388a474797065ab426c6f636b53746f726564"));
    for (const char* name : {"block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id",
                             "medium", "lora_name", "AllBlocksCleared"})
        CHECK(maps.find(name) != maps.npos);
    // Long lists have their length in two or four bytes.
    const std::vector<Change> many = {{Change::Kind::removed, std::vector<uint64_t>(70000, 1), {}, {}}};
    CHECK(hexadecimal(server::event_batch(many, 0, 0, server::EventForm::lists)).find("dd00011170") !=
          std::string::npos);
}

TEST_CASE("kv events: what cannot be had is said in one line") {
    const auto opened = server::KvEvents::open({.endpoint = "nonsense"});
    REQUIRE_FALSE(opened.ok());
    CHECK_MESSAGE(opened.error().message.starts_with("--kv-events "), opened.error().message);
    CHECK(opened.error().message.find('\n') == std::string::npos);
}
