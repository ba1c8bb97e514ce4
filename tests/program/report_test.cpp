// redline report, what it takes out of its text, and the children that it asks.
#include "base/os/child_process.h"
#include "cli/anonymous.h"
#include "cli/commands/bench.h"
#include "json/json.h"
#include "support/program.h"

using namespace redline;
using namespace redline::test;

TEST_CASE("anonymous: homes, users, hosts, UUIDs and addresses are taken out, and nothing else") {
    const cli::Identity who = {"/data/homes/ada", "ada", "enigma"};
    const auto shown = [&](const std::string& text) { return cli::anonymous(text, who); };
    CHECK(shown("/data/homes/ada/models/a.gguf") == "~/models/a.gguf");
    CHECK(shown("/data/homes/adam/a") == "/data/homes/adam/a");
    CHECK(shown("user ada on enigma, adapter") == "user USER on HOST, adapter");
    CHECK(shown("\"/home/bob/x\", /home/eve") == "\"/home/USER/x\", /home/USER");
    CHECK(shown("GPU-1b4e28ba-2fa1-11d2-883f-0016d3cca427!") == "GPU-UUID!");
    CHECK(shown("at 00:1b:44:11:3a:b7.") == "at MAC.");
    CHECK(shown("0000:03:00.0 and 12:34:56") == "0000:03:00.0 and 12:34:56");
    const cli::Identity nobody = {"/", "root", "localhost"};
    CHECK(cli::anonymous("/root/a on localhost by root", nobody) == "/root/a on localhost by root");
}

TEST_CASE("anonymous: names in JSON are taken out of texts before these are escaped, and not of keys") {
    const cli::Identity who = {"/data/homes/ada", "ada", "enigma"};
    Json value = {{"ada", "one\nada\n/home/bob\nC:\\ada"}, {"parts", {{{"at", "enigma"}}, 7, nullptr}}};
    cli::change_texts(value, [&](const std::string& text) { return cli::anonymous(text, who); });
    CHECK(value["ada"] == "one\nUSER\n/home/USER\nC:\\USER");
    CHECK(value["parts"] == Json{{{"at", "HOST"}}, 7, nullptr});
}

TEST_CASE("report: of the model's path its file is left, and other texts stay as they are") {
    CHECK(cli::without_folder("-m a/x.gguf, data/media/y, aa/x.gguf", "a/x.gguf") ==
          "-m x.gguf, data/media/y, aa/x.gguf");
    CHECK(cli::without_folder("/srv/ada/x.gguf beside /srv/ada/y.gguf", "/srv/ada/x.gguf") ==
          "x.gguf beside y.gguf");
    CHECK(cli::without_folder("x.gguf", "x.gguf") == "x.gguf");
}

TEST_CASE("report: one text of all parts, without a name of this user or of the model's folder") {
    const std::string home = file("home/ada");
    std::filesystem::create_directories(home);
    std::filesystem::copy_file(chain_model(), home + "/letters.gguf");
    const auto report = [&](std::vector<std::string> more) {
        Launch what;
        what.arguments = {program(), "report", "-m", home + "/letters.gguf"};
        what.arguments.insert(what.arguments.end(), more.begin(), more.end());
        what.environment = {"HOME=" + home};
        return launch(what);
    };
    const Outcome text = report({});
    CHECK_MESSAGE(text.code == 0, text.err);
    for (const char* part : {"==== redline --version", "==== redline doctor", "==== redline devices",
                             "==== redline verify -m letters.gguf", "==== redline bench -m letters.gguf"})
        CHECK_MESSAGE(has(text.out, part), text.out);
    CHECK(has(text.out, "architectures: "));
    CHECK(has(text.out, "| pp512 |") + has(text.out, " pp512 ") > 0);
    CHECK_FALSE(has(text.out, home));
    CHECK(has(text.err, "4 of 5: verify"));
    // Failures are a part of it.
    const Json all = parse_json(report({"--json", "--seconds", "600", "-q"}).out);
    REQUIRE(all["parts"].size() == 5);
    CHECK(all["parts"][1]["output"]["machine"]["memory_total"] > 0);
    CHECK(all["parts"][4]["problem"].is_null());
    CHECK_FALSE(has(all.dump(), home));
    write_file(home + "/letters.gguf", "no model");
    const Outcome broken = report({"-q"});
    CHECK(broken.code == 0);
    CHECK(broken.err.empty());
    CHECK(has(broken.out, ", exit status 1)"));
    CHECK(has(broken.out, "redline: letters.gguf"));
}

TEST_CASE("bench: a share above all of what was measured is no number, in any form") {
    CHECK(cli::share_text(0.874) == "87 %");
    CHECK(cli::share_text(1.004) == "100 %");
    CHECK(cli::share_text(1.32) == "above");
    CHECK(cli::share_text(0.0312, 1) == "3.1 %");
    cli::BenchRecord record;
    record.model_type = "llama";
    record.samples_ns = {1'000'000'000};
    record.generation = 1;
    record.bytes = 132'000'000'000;
    record.bandwidth = 100e9;
    record.file_bytes = 500'000;
    const std::string row = cli::report_record(cli::BenchFormat::md, record, true);
    CHECK_MESSAGE(has(row, "|  132.00 |   above |"), row);
    CHECK_MESSAGE(has(row, "|      489 KiB |"), row);
    CHECK(parse_json(cli::report_record(cli::BenchFormat::json, record, true).substr(1))["bandwidth_share"]
              .is_null());
    CHECK(has(cli::report_record(cli::BenchFormat::csv, record, true), "\"132.0\",\"100.0\",,"));
    record.bandwidth = 200e9;
    CHECK(has(cli::report_record(cli::BenchFormat::md, record, true), "|  132.00 |    66 % |"));
    // A table of steps by their rows has other columns.
    record.of_one_row = 2.5;
    CHECK(has(cli::report_record(cli::BenchFormat::md, record, true), "|       2.50 |"));
    CHECK(has(cli::report_head(cli::BenchFormat::md, record), "| of one row |"));
    CHECK(parse_json(cli::report_record(cli::BenchFormat::json, record, true).substr(1))["of_one_row"] ==
          2.5);
}
