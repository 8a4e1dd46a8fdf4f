/// attention: o = softmax(scale * q k^T + mask) v, one row of q at a time, and how far a correct kernel may be off.
///
/// A kernel errs in the scores, in rounding its weights, and in its sums. The bound of the check covers the last two:
/// (u + acc) * M for the weights in the tensors' type and for the sums, with M = sum_j p_j |v_j|, u the rounding unit
/// of the type and acc = ceil(seq_k / 16) * 2^-23. The first is added to the magnitude, divided by (u + acc):
///
/// Let score x_j be computed as x_j + e_j with |e_j| <= delta_j. Then the exact softmax of the computed scores gives
///     o' = sum_j p_j e^(e_j) v_j / sum_j p_j e^(e_j)
///     o' - o = sum_j p_j (e^(e_j) - 1) (v_j - o) / sum_j p_j e^(e_j)
/// so that
///     |o' - o| <= E = sum_j p_j (e^(delta_j) - 1) (|v_j| + |o|) / sum_j p_j e^(-delta_j),
/// and the magnitude is M + E / (u + acc). For delta_j:
///     sum of products   ceil(head_dim / 8) * 2^-23 * |scale| * sum_d |q_d| |k_jd|: a step of the shallowest product
///                       of tensor cores (8) loses at most 2^-23 of the sum of magnitudes
///     exponential       2^-22 * (|x_j| + max |x| + 1): x and the maximum are scaled and subtracted in float, four
///                       roundings of 2^-24 each, and the power of two itself is good to 2 units in the last place
/// For N(0, 1) inputs E is far below u * M; with scores of 10^4 it is what decides.
#include <autotune/reference.hpp>

namespace {

struct Sizes {
    std::int64_t q_heads, kv_heads, seq_q, seq_k, head_dim;
    bool causal;
};

/// How many keys a row sees: the first so many. The last row sees all of them.
std::int64_t seen(const Sizes& sizes, std::int64_t row) {
    if (!sizes.causal) return sizes.seq_k;
    return std::clamp<std::int64_t>(row + 1 + sizes.seq_k - sizes.seq_q, 0, sizes.seq_k);
}

struct Row {
    std::vector<double> value, magnitude;
};

/// One row of o. `q` has head_dim elements, `k` and `v` have seq_k rows of as many.
Row attend(const Sizes& sizes, std::int64_t row, const double* q, const double* k, const double* v, double scale,
           double unit) {
    const auto dim = static_cast<std::size_t>(sizes.head_dim);
    const auto keys = static_cast<std::size_t>(seen(sizes, row));
    Row out{std::vector<double>(dim), std::vector<double>(dim)};
    if (keys == 0) return out;

    std::vector<double> x(keys), size(keys);
    double most = -INFINITY, most_size = 0.0;
    for (std::size_t j = 0; j < keys; ++j) {
        for (std::size_t d = 0; d < dim; ++d) {
            const double product = scale * q[d] * k[j * dim + d];
            x[j] += product;
            size[j] += std::abs(product);
        }
        most = std::fmax(most, x[j]);
        most_size = std::fmax(most_size, std::abs(x[j]));
    }

    const double sum_unit = static_cast<double>((sizes.head_dim + 7) / 8) * 0x1p-23;
    double total = 0.0, total_error = 0.0, total_low = 0.0;
    std::vector<double> sum_size(dim), sum_error(dim);
    for (std::size_t j = 0; j < keys; ++j) {
        const double p = std::exp(x[j] - most);
        const double delta = sum_unit * size[j] + 0x1p-22 * (std::abs(x[j]) + most_size + 1.0);
        const double error = p * std::expm1(delta);
        total += p;
        total_error += error;
        total_low += p * std::exp(-delta);
        for (std::size_t d = 0; d < dim; ++d) {
            const double element = v[j * dim + d];
            out.value[d] += p * element;
            sum_size[d] += p * std::abs(element);
            sum_error[d] += error * std::abs(element);
        }
    }
    for (std::size_t d = 0; d < dim; ++d) {
        out.value[d] /= total;
        const double error = (sum_error[d] + std::abs(out.value[d]) * total_error) / total_low;
        out.magnitude[d] = sum_size[d] / total + error / unit;
    }
    return out;
}

}  // namespace

AUTOTUNE_REFERENCE(attention) {
    const Sizes sizes{.q_heads = call.integer("q_heads"),
                      .kv_heads = call.integer("kv_heads"),
                      .seq_q = call.integer("seq_q"),
                      .seq_k = call.integer("seq_k"),
                      .head_dim = call.integer("head_dim"),
                      .causal = call.flag("causal")};
    const auto q = call.doubles("q");
    const auto k = call.doubles("k");
    const auto v = call.doubles("v");
    autotune::Output o = call.output("o");
    const double scale = static_cast<float>(call.real("scale"));
    const double unit = (call.tensor("q").dtype == AUTOTUNE_BF16 ? 0x1p-8 : 0x1p-11) +
                        static_cast<double>((sizes.seq_k + 15) / 16) * 0x1p-23;

    const auto rows = static_cast<std::size_t>(call.integer("batch") * sizes.q_heads * sizes.seq_q);
    const auto dim = static_cast<std::size_t>(sizes.head_dim);
    call.parallel(rows, [&](std::size_t at) {
        const auto row = static_cast<std::int64_t>(at) % sizes.seq_q;
        const auto head = static_cast<std::int64_t>(at) / sizes.seq_q;  // of all batches
        const auto kv_head =
            head / sizes.q_heads * sizes.kv_heads + head % sizes.q_heads / (sizes.q_heads / sizes.kv_heads);
        const auto kv = static_cast<std::size_t>(kv_head * sizes.seq_k) * dim;
        const Row result = attend(sizes, row, &q[at * dim], k.data() + kv, v.data() + kv, scale, unit);
        for (std::size_t d = 0; d < dim; ++d) o.set(at * dim + d, result.value[d], result.magnitude[d]);
    });
}
