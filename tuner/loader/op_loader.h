#ifndef AUTOTUNE_LOADER_OP_LOADER_H
#define AUTOTUNE_LOADER_OP_LOADER_H

#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "tuner/loader/file_source.h"
#include "tuner/model/op.h"

namespace autotune {

struct LoadOptions {
    /// Sources and headers that are found where the op's own files have none: the built-in ones. May be nullptr.
    const FileSource* shared = nullptr;
    /// The ops that `extends` may name, and whose linked-in reference a file that replaces one may keep.
    std::function<const Op*(std::string_view)> known = {};
    /// At build time: C++ references are linked in, so their files are not asked for.
    bool builtin = false;
    /// Of a file that the op's own have not: whether it is a C++ reference that is linked in. Empty: none is.
    std::function<bool(std::string_view)> linked = {};
};

/// Reads one op file and the files it names; docs/op-format.md is the format.
/// name: what messages call the file
/// throws  Error{usage}: file, line, column, what is wrong and what would be right; then the line with a caret
Op load_op(std::string_view toml_text, const FileSource& files, std::string_view name, const LoadOptions& options = {});

/// All ops of a folder, by file name: each *.toml directly in it, with the files it names. A file that `extends` comes
/// after those that do not; it may extend an op of the same folder. Throws Error{usage}.
std::vector<Op> load_op_folder(const std::filesystem::path& folder, const LoadOptions& options = {});

}  // namespace autotune
#endif
