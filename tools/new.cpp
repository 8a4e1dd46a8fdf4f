#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "autotune/error.h"
#include "tools/new_files.h"
#include "tools/subcommands.h"

namespace autotune {

/// `new DIR`: a folder with one working op, to change step by step. Nothing that exists is overwritten.
int run_new(const Request& request, Console& console) {
    namespace fs = std::filesystem;
    if (request.folder.empty()) throw Error{Error::Kind::usage, "new needs the folder to make", "autotune new my_ops"};
    const fs::path folder = request.folder;
    std::error_code failed;
    if (fs::exists(folder, failed) && !(fs::is_directory(folder, failed) && fs::is_empty(folder, failed)))
        throw Error{Error::Kind::usage, fmt::format("'{}' is there already and not an empty folder", request.folder),
                    "choose another name"};
    fs::create_directories(folder, failed);
    if (failed)
        throw Error{Error::Kind::usage, fmt::format("'{}' could not be made: {}", request.folder, failed.message())};
    for (const NewFile& file : new_files) {
        std::ofstream stream{folder / file.name, std::ios::binary};
        stream << file.text;
        if (!stream.flush())
            throw Error{Error::Kind::usage, fmt::format("'{}' could not be written", (folder / file.name).string())};
        console.line(fmt::format("wrote {}", (folder / file.name).string()));
    }
    console.result(fmt::format("next: autotune check --op scale --ops {0}     then: autotune --op scale --ops {0}",
                               request.folder));
    return 0;
}

}  // namespace autotune
