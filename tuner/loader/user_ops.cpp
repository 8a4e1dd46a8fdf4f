#include "tuner/loader/user_ops.h"

#include "tuner/chains/chain.h"
#include "tuner/loader/op_loader.h"
#include "tuner/model/builtin_ops.h"

namespace autotune {

std::vector<std::string> add_op_folder(OpSet& ops, const std::filesystem::path& folder) {
    const MemoryFiles shared{builtin_files()};
    LoadOptions options;
    options.shared = &shared;
    options.known = [&ops](std::string_view name) { return ops.find_or_null(name); };
    options.linked = [](std::string_view file) { return file == chain_reference; };
    return ops.add(load_op_folder(folder, options));
}

}  // namespace autotune
