// What goes wrong while the program runs: devices that compute nothing, files that cannot be written, memory
// that is not to be had, and signals.
#include "support/program.h"

using namespace redline;
using namespace redline::test;

TEST_CASE("fault: logits that are all the same are an error in every command that makes some") {
    ChainModel flat;
    flat.chat = true;
    flat.next.clear();
    flat.build().save(file("flat.gguf"));
    write_file(file("letters.txt"), "abcdefghijklmnopqrst");
    const std::vector<std::vector<std::string>> commands = {
        {"run", "-p", "a"},
        {"eval", "-f", file("letters.txt"), "-c", "8"},
        {"eval", "-f", file("letters.txt"), "--logits", file("flat.npy")},
        {"bench", "-p", "8", "-n", "0", "-r", "1", "-o", "json"}};
    for (std::vector<std::string> arguments : commands) {
        arguments.insert(arguments.end(), {"-m", file("flat.gguf"), "--device", "cpu", "-q"});
        check_refused(arguments, 1, {"all 290 logits are 0", "the model file is damaged"});
    }
    CHECK_FALSE(std::filesystem::exists(file("flat.npy")));
    const Outcome chat = redline_({"chat", "-m", file("flat.gguf"), "--device", "cpu", "-q"}, "hello\n");
    CHECK(chat.code == 1);
    CHECK(chat.out.empty());
    CHECK(has(chat.err, "all 290 logits are 0"));
}
