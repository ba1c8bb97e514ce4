// The choice of the template or format that writes a conversation, by the user's wish and the model file.
#include "host/chat_writer.h"

#include "support/chain_model.h"
#include "support/text_support.h"

#include <filesystem>

#include <unistd.h>

using namespace redline;
using namespace redline::test;
using redline::ChatWriter;
using redline::ChatWriterOptions;

namespace {

struct WriterFolder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / fmt::format("redline_chat_writer_{}", ::getpid());
    WriterFolder() { std::filesystem::create_directories(path); }
    ~WriterFolder() { std::filesystem::remove_all(path); }
};

std::string file(const std::string& name) {
    static const WriterFolder folder;
    return folder.path / name;
}

// A model file with these templates; the first is the usual one.
Model model_with(const std::vector<std::pair<std::string, std::string>>& templates) {
    static int files = 0;
    ChainModel chain;
    chain.chat = true;
    chain.chat_template = templates[0].second;
    for (size_t i = 1; i < templates.size(); ++i)
        chain.extra.add("tokenizer.chat_template." + templates[i].first, templates[i].second);
    const std::string path = file(fmt::format("templates{}.gguf", ++files));
    chain.build().save(path);
    Result<Model> model = Model::inspect(path);
    REQUIRE_MESSAGE(model.ok(), (model.ok() ? "" : model.error().message));
    return std::move(model).value();
}

const Json kTools = parse_json(R"([{"type": "function", "function": {"name": "f", "parameters": {}}}])");

std::string written(const Model& model, const std::string& choice, const Json& tools = nullptr) {
    Result<ChatWriter> writer =
        ChatWriter::create(model, {.choice = choice, .variables = Json::object(), .thinking = {}});
    if (!writer) return "error: " + writer.error().message;
    const auto text = writer->write({{{"role", "user"}, {"content", "x"}}}, tools);
    if (!text) return "error: " + text.error().message;
    std::string all;
    for (const TextPart& part : text.value().parts) all += part.text;
    return all;
}

const std::string kEcho = "{{ messages[0].content }}";

}  // namespace

TEST_CASE("chat writer: where functions are offered, the file's template for these is used") {
    const Model model =
        model_with({{"", "u" + kEcho}, {"tool_use", "t" + kEcho + "{{ tools[0].function.name if tools }}"}});
    CHECK(written(model, "") == "ux");
    CHECK(written(model, "", kTools) == "txf");
    CHECK(written(model, "tool_use") == "tx");
    CHECK(written(model, "default") == "ux");
    CHECK(mentions(written(model, "default", kTools), "no place for functions"));
    // The same writer goes back.
    Result<ChatWriter> writer =
        ChatWriter::create(model, {.choice = {}, .variables = Json::object(), .thinking = {}});
    REQUIRE(writer.ok());
    const Json question = {{{"role", "user"}, {"content", "x"}}};
    CHECK(writer->write(question, kTools).value().parts[0].text == "t");
    CHECK(writer->write(question, nullptr).value().parts[0].text == "u");
    // A broken one is noted, and the usual one used.
    const Model broken =
        model_with({{"", "u" + kEcho + "{{ tools|tojson if tools }}"}, {"tool_use", "{% if %}"}});
    CHECK(written(broken, "", kTools).starts_with("ux[{"));
}

TEST_CASE("chat writer: an empty template is none") {
    CHECK(written(model_with({{"", " \n"}}), "") ==
          "<s><|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n");
}

TEST_CASE("chat writer: the choice is a format's name, a file, the name of a template or its text") {
    const Model model = model_with({{"", "u" + kEcho}, {"rag", "r" + kEcho}});
    CHECK(written(model, "rag") == "rx");
    CHECK(written(model, "<{{ messages[0].content }}>") == "<x>");
    CHECK(written(model, "{% if messages %}y{% endif %}") == "y");
    CHECK(written(model, "{% if %}").starts_with("error: the text given as the chat template: line 1"));
    std::ofstream(file("t.jinja")) << "f" + kEcho;
    CHECK(written(model, file("t.jinja")) == "fx");
    CHECK(written(model, "gpt-oss").ends_with("<|start|>user<|message|>x<|end|><|start|>assistant"));
    const std::string unknown = written(model, "morse");
    CHECK(mentions(
        unknown,
        "--chat-template morse: there is no such file, the model file's templates are default, rag"));
    CHECK(mentions(unknown, "known are bailing, "));
    CHECK(mentions(written(model, file("nowhere.jinja")), "there is no such file"));
}
