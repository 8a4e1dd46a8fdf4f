#include "tuner/worker/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <optional>
#include <span>
#include <string>

#include "autotune/error.h"
#include "autotune/reference.hpp"

namespace autotune {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
    throw Error{Error::Kind::usage, fmt::format("'{}' {}", file.string(), why)};
}

std::optional<DType> dtype_of(std::string_view descr) {
    constexpr std::array<std::pair<std::string_view, DType>, 10> known{{{"<f8", DType::f64},
                                                                        {"<f4", DType::f32},
                                                                        {"<f2", DType::f16},
                                                                        {"<i8", DType::i64},
                                                                        {"<i4", DType::i32},
                                                                        {"<i2", DType::i16},
                                                                        {"|i1", DType::i8},
                                                                        {"|u1", DType::u8},
                                                                        {"<u4", DType::u32},
                                                                        {"|b1", DType::boolean}}};
    for (const auto& [name, dtype] : known)
        if (name == descr) return dtype;
    return std::nullopt;
}

/// The text behind `'key': ` in a header, up to `end`.
std::string_view value_of(std::string_view header, std::string_view key, char end) {
    const std::size_t at = header.find(key);
    if (at == std::string_view::npos) return {};
    std::string_view rest = header.substr(at + key.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" :'("), rest.size()));
    return rest.substr(0, rest.find(end));
}

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("{}", fmt::join(shape, ", ")); }

}  // namespace

std::vector<double> read_npy(const std::filesystem::path& file, std::span<const std::int64_t> shape) {
    std::ifstream in{file, std::ios::binary};
    std::array<char, 10> start{};
    if (!in.read(start.data(), 8) || std::string_view{start.data(), 6} != "\x93NUMPY") refuse(file, "is no .npy file");
    const int length_bytes = start[6] == 1 ? 2 : 4;
    std::array<unsigned char, 4> length{};
    in.read(reinterpret_cast<char*>(length.data()), length_bytes);
    const std::size_t header_bytes = length[0] + 256u * length[1] + (static_cast<std::size_t>(length[2]) << 16);
    std::string header(std::min<std::size_t>(header_bytes, 1 << 20), '\0');
    if (!in.read(header.data(), static_cast<std::streamsize>(header.size()))) refuse(file, "ends within its header");
    if (header.find("'fortran_order': True") != std::string::npos)
        refuse(file, "is in Fortran order; store it in C order");
    const std::optional<DType> dtype = dtype_of(value_of(header, "'descr'", '\''));
    if (!dtype) refuse(file, fmt::format("holds elements of type '{}'", value_of(header, "'descr'", '\'')));
    std::string told{value_of(header, "'shape'", ')')};
    while (!told.empty() && (told.back() == ',' || told.back() == ' ')) told.pop_back();
    if (told != shape_text(shape))
        refuse(file, fmt::format("has the shape ({}), and the tensor ({})", told, shape_text(shape)));

    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    std::vector<char> data(count * size_of(*dtype));
    if (!in.read(data.data(), static_cast<std::streamsize>(data.size()))) refuse(file, "ends before its last element");
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = element_as_double(data.data(), static_cast<int>(*dtype), static_cast<std::int64_t>(i));
    return values;
}

std::vector<Fd> npy_values(const Op& op, const std::vector<TensorTask>& tensors) {
    std::vector<Fd> fds;
    for (const TensorTask& tensor : tensors) {
        if (!tensor.present || (tensor.role != Role::out && tensor.role != Role::inout)) continue;
        const auto entry =
            std::ranges::find(op.reference.npy, tensor.name, &std::pair<std::string, std::string>::first);
        if (entry == op.reference.npy.end())
            throw Error{Error::Kind::usage,
                        fmt::format("the reference of '{}' names no file for '{}'", op.name, tensor.name)};
        std::vector<double> values = read_npy(std::filesystem::path{op.folder} / entry->second, tensor.shape);
        fds.push_back(sealed_memory(std::as_bytes(std::span{values})));
        for (double& value : values) value = std::abs(value);
        fds.push_back(sealed_memory(std::as_bytes(std::span{values})));
    }
    return fds;
}

}  // namespace autotune
