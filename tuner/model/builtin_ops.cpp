#include "tuner/model/builtin_ops.h"

#include "tuner/model/embedded.h"
#include "tuner/model/op_json.h"

namespace autotune {

std::span<const Op> builtin_ops() {
    static const std::vector<Op> ops = [] {
        std::vector<Op> read;
        for (const embedded::OpText& text : embedded::ops()) {
            Op& op = read.emplace_back(op_from_json(text.json));
            for (std::string_view names = text.files; !names.empty();) {
                const std::size_t end = names.find('\n');
                const std::string name{names.substr(0, end)};
                op.files[name] = builtin_files().find(name)->second;
                names.remove_prefix(end + 1);
            }
        }
        return read;
    }();
    return ops;
}

const std::map<std::string, std::string, std::less<>>& builtin_files() {
    static const std::map<std::string, std::string, std::less<>> files = [] {
        std::map<std::string, std::string, std::less<>> read;
        for (const embedded::File& file : embedded::files()) read.emplace(file.name, file.text);
        return read;
    }();
    return files;
}

}  // namespace autotune
