// Any text either is an op or ends in an Error{usage} that names the file; an op goes to JSON and back unchanged.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "autotune/error.h"
#include "tuner/loader/op_loader.h"
#include "tuner/model/op_json.h"

namespace {

void demand(bool holds) {
    if (!holds) std::abort();
}

/// Has every file that a text may name: an include of itself, of others, and one that is no text.
class AnyFile final : public autotune::FileSource {
public:
    std::optional<std::string> read(std::string_view path) const override {
        if (path == "none") return std::nullopt;
        return "#include \"" + std::string{path.substr(path.size() / 2)} + "\"\n#include \"x.cuh\"\n\xff";
    }
};

const autotune::Op* scale() {
    static const autotune::Op op = autotune::load_op(
        "format = 1\nop = \"scale\"\nsummary = \"\"\n[problem]\nn = { dim = \"near\" }\n[[tensor]]\nname = \"x\"\nrole "
        "= \"in\"\n"
        "dtype = \"f32\"\nshape = [\"n\"]\nstrides = [\"step\"]\n[[tensor]]\nname = \"y\"\nrole = \"out\"\ndtype = "
        "\"f32\"\nshape = [\"n\"]\n"
        "[let]\nhalf = \"n // 2\"\n[reference]\nkernel = \"plain\"\n[tolerance]\ny = { exact = true "
        "}\n[[kernel]]\nname = \"plain\"\n"
        "source = \"a.cu\"\nentry = \"f\"\n[[kernel.launch]]\ngrid = [1]\nblock = [1]\nargs = [\"y\", \"i64(step)\"]\n",
        AnyFile{}, "scale.toml");
    return &op;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    autotune::LoadOptions options;
    options.known = [](std::string_view name) { return name == "scale" ? scale() : nullptr; };
    try {
        const autotune::Op op = autotune::load_op(text, AnyFile{}, "x.toml", options);
        const std::string json = autotune::op_to_json(op);
        demand(autotune::op_to_json(autotune::op_from_json(json)) == json);
    } catch (const autotune::Error& error) {
        demand(error.kind() == autotune::Error::Kind::usage);
        demand(std::string_view{error.what()}.starts_with("x.toml"));
    }
    return 0;
}
