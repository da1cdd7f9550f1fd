//! Families of kernels: what a kernel does, by its name.

use std::sync::LazyLock;

use regex::RegexSet;

/// The families in order of preference, each with what its names hold. The first that
/// matches counts: a fused attention kernel multiplies matrices, too.
const FAMILIES: [(&str, &str); 11] = [
    ("triton", "triton"),
    ("attention", "flash|fmha|attn"),
    ("convolution", "conv|dgrad|wgrad|winograd"),
    ("gemm", "gemm|cutlass|xmma|Cijk|wgmma"),
    ("softmax", "softmax"),
    ("norm", r"norm|(^|[^a-z])bn_"),
    ("embedding", "embedding"),
    ("optimizer", "multi_tensor|adam|sgd"),
    ("reduce", "reduce"),
    ("index, sort and concat", "index|sort|gather|scatter|cat"),
    ("elementwise", "elementwise"),
];

/// What belongs to none of them.
pub(super) const OTHER: &str = "other";

/// The family of a kernel.
pub(super) fn family(name: &str) -> &'static str {
    static PATTERNS: LazyLock<Option<RegexSet>> =
        LazyLock::new(|| RegexSet::new(FAMILIES.map(|(_, pattern)| format!("(?i){pattern}"))).ok());
    let first = PATTERNS.as_ref().and_then(|set| set.matches(name).iter().next());
    first.map_or(OTHER, |place| FAMILIES[place].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_family_that_matches_counts() {
        let cases = [
            ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>", "gemm"),
            ("flash_fwd_kernel<Flash_fwd_kernel_traits>", "attention"),
            ("cudnn::winograd_nonfused::winogradForwardData4x4", "convolution"),
            ("implicit_convolve_sgemm", "convolution"),
            ("void at::native::vectorized_elementwise_kernel<4, FillFunctor>", "elementwise"),
            ("triton_poi_fused_add_0", "triton"),
            ("Cijk_Ailk_Bljk_HHS_BH_MT64x64", "gemm"),
            ("copy_kernel", "other"),
        ];
        for (name, expected) in cases {
            assert_eq!(family(name), expected, "{name}");
        }
    }
}
