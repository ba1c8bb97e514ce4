// Files by path in a temporary folder, which stands for the root of the file systems in which kernels report
// their state.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <stdlib.h>

namespace redline::test {

using Files = std::map<std::string, std::string>;

struct Tree {
    std::string root;
    explicit Tree(const Files& files) {
        std::string name = (std::filesystem::temp_directory_path() / "redline_tree_XXXXXX").string();
        root = ::mkdtemp(name.data());
        for (const auto& [path, text] : files) {
            std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
            std::ofstream(root + path) << text;
        }
    }
    ~Tree() { std::filesystem::remove_all(root); }
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;
    operator const std::string&() const { return root; }
};

}  // namespace redline::test
