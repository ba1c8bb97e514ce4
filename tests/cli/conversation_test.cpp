// The parts of a conversation that are read again, and the limits on a file of one.
#include "cli/conversation.h"
#include "cli/demo_model.h"
#include "support/models.h"

#include <doctest/doctest.h>

using namespace redline;
using namespace redline::cli;
using namespace redline::test;

namespace {

const Model& demo_model() {
    static const Model model = must(Model::inspect(must(find_demo_model())));
    return model;
}

std::vector<Token> encode(std::string_view text) {
    return demo_model().tokenizer().encode(text, {.add_special = false});
}

// Each byte of the text as the tokens of it alone.
std::vector<Token> letter_by_letter(std::string_view text) {
    std::vector<Token> all;
    for (const char letter : text)
        for (const Token token : encode(std::string_view(&letter, 1))) all.push_back(token);
    return all;
}

}  // namespace

TEST_CASE("conversation: text that was read in other tokens is not read again") {
    const Tokenizer& tokenizer = demo_model().tokenizer();
    const std::string answer = "the answer is what it was";
    const std::vector<Token> read = letter_by_letter(answer);
    REQUIRE(tokenizer.decode(read) == answer);
    REQUIRE(read != encode(answer));
    // All of it, and what follows.
    const std::vector<Token> more = encode(answer + ". And then?");
    const std::vector<Token> kept = keep_read(read, more, tokenizer);
    CHECK(tokenizer.decode(kept) == tokenizer.decode(more));
    REQUIRE(kept.size() > read.size() - 2);
    CHECK(std::equal(read.begin(), read.end() - 2, kept.begin()));
    // Up to where the text differs, which is between two words.
    const std::vector<Token> other = encode("the answer is no more");
    const std::vector<Token> same = keep_read(read, other, tokenizer);
    CHECK(tokenizer.decode(same) == tokenizer.decode(other));
    CHECK(std::equal(read.begin(), read.begin() + 13, same.begin()));
    CHECK(keep_read({}, other, tokenizer) == other);
    CHECK(keep_read(read, {}, tokenizer).empty());
}

TEST_CASE("conversation: a control token is kept only for itself") {
    const Tokenizer& tokenizer = demo_model().tokenizer();
    Token control = kNoToken;
    for (Token token = 0; token < Token(tokenizer.size()) && control == kNoToken; ++token)
        if (tokenizer.type(token) == TokenType::control) control = token;
    REQUIRE(control != kNoToken);
    const std::string spelled(tokenizer.raw_text(control));
    const std::vector<Token> as_text = encode(spelled);
    CHECK(keep_read(std::vector<Token>{control}, as_text, tokenizer) == as_text);
    CHECK(keep_read(as_text, {control}, tokenizer) == std::vector<Token>{control});
    CHECK(keep_read(std::vector<Token>{control}, {control}, tokenizer) == std::vector<Token>{control});
}

TEST_CASE("conversation: a file's text is read back as it was, and nonsense is refused by name") {
    SavedConversation saved;
    saved.messages = {{Role::system, "be \"brief\"", {}},
                      {Role::user, "a\nb", {}},
                      {Role::assistant, "\xE2\x82\xAC", "because"}};
    saved.last_answer = {3, 4};
    saved.answers = 7;
    saved.seed = 0xFFFFFFF0u;
    saved.unread = 2;
    saved.draft = "half a";
    const SavedConversation back = must(read_conversation(to_json_text(saved), "x"));
    REQUIRE(back.messages.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
        CHECK(back.messages[i].role == saved.messages[i].role);
        CHECK(back.messages[i].content == saved.messages[i].content);
        CHECK(back.messages[i].reasoning == saved.messages[i].reasoning);
    }
    CHECK(back.last_answer == saved.last_answer);
    CHECK(back.answers == 7);
    CHECK(back.seed == saved.seed);
    CHECK(back.unread == 2);
    CHECK(back.draft == "half a");
    // The form that earlier versions wrote.
    const SavedConversation old =
        must(read_conversation("{\"messages\":[],\"last_answer\":[],\"answers\":1,\"seed\":2}", "x"));
    CHECK(old.unread == 0);
    CHECK(old.draft.empty());
    for (const char* text :
         {"", "[]", "{", "{\"messages\":[3]}", "{\"messages\":{\"a\":1}}",
          "{\"messages\":[{\"role\":\"king\",\"content\":\"x\"}]}",
          "{\"messages\":[{\"role\":\"user\",\"content\":5}]}", "{\"messages\":[],\"answers\":-1,\"seed\":0}",
          "{\"messages\":[],\"answers\":0,\"seed\":99999999999}",
          "{\"messages\":[],\"answers\":0,\"seed\":0,\"unread\":1}",
          "{\"messages\":[],\"answers\":0,\"seed\":0,\"draft\":[]}",
          "{\"messages\":[],\"last_answer\":[\"x\"],\"answers\":0,\"seed\":0}"}) {
        const Result<SavedConversation> refused = read_conversation(text, "talk.session");
        REQUIRE_FALSE(refused.ok());
        CHECK(refused.error().message.starts_with("talk.session holds no conversation"));
    }
}

TEST_CASE("conversation: reasoning is exported before its answer") {
    const std::vector<ChatMessage> messages = {{Role::user, "why?", {}},
                                               {Role::assistant, "so.", "first\nsecond"}};
    CHECK(must(export_text(messages, "x.md")) ==
          "## User\n\nwhy?\n\n## Assistant\n\n> first\n> second\n\nso.\n");
    CHECK(must(export_text(messages, "x.json")).find("\"reasoning_content\": \"first\\nsecond\"") !=
          std::string::npos);
}
